//! Causes of the machine that a target runs on: its CPUs, its memory, its clock.

causes! {
    quota,
    traced,
    security_hooks,
    priority,
    noisy_neighbour,
    stolen,
    fewer_cores,
    slower,
    io_limit,
    memory_limit,
    cold_cache,
    contention,
    slow_clock,
}
