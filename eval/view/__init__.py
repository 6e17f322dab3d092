"""`rearrange view`: a home in the browser, with whoever acts in it, or the person who looks at it."""
