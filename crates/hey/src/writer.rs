//! Lines for standard output, written by a thread of their own.
//!
//! Whoever reads them may pause, as a pager does. Were they written where results are counted, the records of all requests
//! would pile up meanwhile until memory is full, and Ctrl-C would not get through.

use std::io::{self, ErrorKind, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that are handed over at once.
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that may wait: 16 MiB, which a pager's user does not fill while reading a page.
const MOST_WAITING: usize = 256;
/// How long the queue may be full: until then records pile up, at most some hundred bytes for each request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same once the run is to end: nobody who pressed Ctrl-C wants to wait for a reader that hangs.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Time between two looks at a full queue.
const PAUSE: Duration = Duration::from_millis(5);

/// Writes what it is given, in order.
#[derive(Debug)]
pub struct Writer {
    /// `None` once no more is written.
    pieces: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Since when there was no room at once.
    full_since: Option<Instant>,
}

impl Writer {
    /// Begins the thread. An error: the system has none left.
    pub fn to(mut out: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, waiting) = sync_channel::<Vec<u8>>(MOST_WAITING);
        let write = move || waiting.iter().try_for_each(|piece| out.write_all(&piece).and_then(|()| out.flush()));
        let thread = std::thread::Builder::new().name("hey-output".into()).spawn(write)?;
        Ok(Self { pieces: Some(pieces), thread: Some(thread), full_since: None })
    }

    /// Queues a text. An error is the first that writing met with, or that nobody read for too long; the rest is not written
    /// then. `stop`: the run is to end.
    pub fn print(&mut self, text: &str, stop: &AtomicBool) -> io::Result<()> {
        text.as_bytes().chunks(PIECE_BYTES).try_for_each(|piece| self.queue(piece.to_vec(), stop))
    }

    fn queue(&mut self, mut piece: Vec<u8>, stop: &AtomicBool) -> io::Result<()> {
        let mut has_waited = false;
        loop {
            let Some(pieces) = &self.pieces else { return Ok(()) };
            match pieces.try_send(piece) {
                Ok(()) => {
                    // A reader that is slow for ever leaves room for one piece now and then.
                    if !has_waited {
                        self.full_since = None;
                    }
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return self.end(stop),
                Err(TrySendError::Full(back)) => piece = back,
            }
            has_waited = true;
            let patience = if stop.load(Ordering::Relaxed) { LAST_PATIENCE } else { PATIENCE };
            if self.full_since.get_or_insert_with(Instant::now).elapsed() > patience {
                // What hangs in writing is left alone; it ends with this process.
                (self.pieces, self.thread) = (None, None);
                return Err(unread());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until everything is written, or nobody has read the rest for too long.
    pub fn end(&mut self, stop: &AtomicBool) -> io::Result<()> {
        self.pieces = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let since = Instant::now();
        while !thread.is_finished() {
            let patience = if stop.load(Ordering::Relaxed) { LAST_PATIENCE } else { PATIENCE };
            if since.elapsed() > patience {
                return Err(unread());
            }
            std::thread::sleep(PAUSE);
        }
        thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread is gone")))
    }
}

fn unread() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "its reader takes less than is printed, or nothing at all; the run was stopped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Tells what is written, and writes only as long as it may.
    struct Told {
        to: Sender<Vec<u8>>,
        may: Receiver<()>,
    }

    impl Write for Told {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.may.recv().map_err(|_| ErrorKind::BrokenPipe)?;
            self.to.send(bytes.to_vec()).map_err(|_| ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told() -> (Told, Receiver<Vec<u8>>, Sender<()>) {
        let ((to, written), (allow, may)) = (channel(), channel());
        (Told { to, may }, written, allow)
    }

    #[test]
    fn everything_is_written_in_order() {
        let (out, written, allow) = told();
        let stop = AtomicBool::new(false);
        let mut writer = Writer::to(out).unwrap();
        let texts = ["one\n".to_owned(), "x".repeat(3 * PIECE_BYTES + 1), String::new(), "two\n".to_owned()];
        for text in &texts {
            writer.print(text, &stop).unwrap();
        }
        (0..20).for_each(|_| allow.send(()).unwrap());
        writer.end(&stop).unwrap();
        drop(writer);
        assert_eq!(written.iter().flatten().collect::<Vec<_>>(), texts.concat().into_bytes());
    }

    #[test]
    fn a_reader_that_hangs_holds_up_nobody_for_ever() {
        let (out, _written, _allow) = told();
        let stop = AtomicBool::new(true);
        let mut writer = Writer::to(out).unwrap();
        let text = "x".repeat((MOST_WAITING + 2) * PIECE_BYTES);
        assert_eq!(writer.print(&text, &stop).unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(writer.print("more", &stop).is_ok(), "it is said once");
        assert!(writer.end(&stop).is_ok());
    }

    #[test]
    fn a_reader_that_has_gone_is_said() {
        let (out, written, allow) = told();
        drop((written, allow));
        let stop = AtomicBool::new(false);
        let mut writer = Writer::to(out).unwrap();
        let printed = writer.print("x", &stop).and_then(|()| writer.end(&stop));
        assert_eq!(printed.unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
