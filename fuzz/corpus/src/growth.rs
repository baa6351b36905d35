//! How the work that reading is grows with what is read: for tests.

use duel_load::thread_cpu_ns;

/// Fails where ten times the size takes far more than ten times the CPU time: a hundred times, where work grows with the
/// square. `prepare` gets a size, and what it answers is measured. Of several tries the best counts; a machine that is busy
/// with other things gives a thread less time, but does not make its work more.
///
/// # Panics
///
/// It is not.
pub fn is_linear<W: FnMut()>(prepare: impl Fn(usize) -> W) {
    const SMALL: usize = 10_000;
    const TRIES: usize = 5;
    let best_ns = |size: usize| {
        let mut work = prepare(size);
        let time_ns = |_| {
            let begin_ns = thread_cpu_ns();
            work();
            thread_cpu_ns().zip(begin_ns).map_or(0, |(end_ns, begin_ns)| end_ns - begin_ns)
        };
        (0..TRIES).map(time_ns).min().unwrap_or_default()
    };
    // Below that the clock and the caches are what is measured.
    let small_ns = best_ns(SMALL).max(20_000);
    let large_ns = best_ns(10 * SMALL);
    assert!(large_ns < 30 * small_ns, "{SMALL} took {small_ns} ns, ten times as much took {large_ns} ns");
}
