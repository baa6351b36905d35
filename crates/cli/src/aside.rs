//! Threads beside the measurement: a panic in one of them takes nothing else with it.
//!
//! The release profile aborts on a panic, which keeps the code that would unwind out of the load generator. The panic hook is
//! called before that, by the thread that panicked: where it does not return, the thread stays where it is, and the process
//! goes on. So a thread that only tells others how a run goes is set aside, and the run is measured, judged and kept. Such a
//! thread holds no lock that anybody waits for, and nobody waits for its end without a limit.
//!
//! The threads that load, the one that judges and those that hold the shells of hosts are waited for: a panic there still
//! ends the process, as their figures could not be believed any more.

use std::cell::RefCell;
use std::io;
use std::thread::JoinHandle;

type Farewell = Box<dyn FnOnce() + Send>;

thread_local! {
    /// What a thread beside the measurement wants to be done if it panics; `None` on all others.
    static FAREWELL: RefCell<Option<Farewell>> = const { RefCell::new(None) };
}

/// From here on, threads started by [`spawn`] are set aside when they panic.
pub(crate) fn guard() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        // A thread that is ending has no farewell any more, and one that panics within it has none left.
        let farewell = FAREWELL.try_with(|farewell| farewell.try_borrow_mut().ok()?.take()).ok().flatten();
        if let Some(farewell) = farewell {
            farewell();
            loop {
                std::thread::park();
            }
        }
    }));
}

/// Starts a thread beside the measurement; `farewell` is called in its place if it panics.
pub(crate) fn spawn(
    name: &str,
    farewell: impl FnOnce() + Send + 'static,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        FAREWELL.set(Some(Box::new(farewell)));
        work();
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Set in the process in which the thread panics.
    const PROCESS: &str = "DUEL_TEST_ASIDE";

    #[test]
    fn a_thread_that_panics_says_farewell_and_is_set_aside() {
        // A thread that is set aside holds the panic hook, which the test harness takes back at its end: it would wait for
        // ever. So the thread panics in a process of its own, which ends without the harness.
        if std::env::var_os(PROCESS).is_some() {
            panics_and_goes_on();
            std::process::exit(0);
        }
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "aside::tests::a_thread_that_panics_says_farewell_and_is_set_aside", "--nocapture"]);
        let output = command.env(PROCESS, "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && told.contains("went on"),
            "{told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn panics_and_goes_on() {
        guard();
        let (tell, told) = channel();
        let thread = spawn("aside", move || tell.send("gone").unwrap(), || panic!("expected")).unwrap();
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok("gone"));
        // Had the hook returned, the thread would end here; the release profile would have ended the process.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!thread.is_finished());
        // Others panic as ever.
        assert!(std::thread::spawn(|| panic!("expected")).join().is_err());
        let (tell, told) = channel();
        spawn("aside", || (), move || tell.send(1).unwrap()).unwrap().join().unwrap();
        assert_eq!(told.recv(), Ok(1));
        println!("went on");
    }
}
