"""Several processes that learn one policy: which rank this is, gradients, preemption, what happens when one dies."""
