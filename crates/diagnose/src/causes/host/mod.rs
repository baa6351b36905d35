//! Causes of the machine that a target runs on: its CPUs, its memory, its clock.

causes! {
    quota::Quota,
    traced::Traced,
    noisy_neighbour::NoisyNeighbour,
    stolen::Stolen,
    fewer_cores::FewerCores,
    slower::Slower,
    memory_limit::MemoryLimit,
    contention::Contention,
    slow_clock::SlowClock,
}
