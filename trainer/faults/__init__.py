"""How a run ends before its time: signals, callbacks, NaN; and what is saved and told then."""
