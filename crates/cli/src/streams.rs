//! Standard output as it was when the program was started.
//!
//! Where one of the three standard streams is closed, the standard library opens `/dev/null` in its place before `main`, so that
//! no socket and no archive gets its number. A result that is printed then vanishes, and nothing tells: `/dev/null` open for
//! reading and writing is what Python's `subprocess.DEVNULL` passes on as well, and who asks for that wants no error. So the
//! question has to be asked before the standard library starts. The rejected alternative is to guess.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

static OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Called before the standard library starts, of which nothing may be used here: this is one system call.
extern "C" fn look() {
    if rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF) {
        OUTPUT_WAS_CLOSED.store(true, Ordering::Relaxed);
    }
}

#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
#[expect(unsafe_code, reason = "the section that the loader calls functions from before the standard library starts")]
static LOOK: extern "C" fn() = look;

/// Standard output, which tells of every byte that could not be written. The standard library's takes a descriptor that cannot
/// be written to for one that wants nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if OUTPUT_WAS_CLOSED.load(Ordering::Relaxed) {
            return Err(io::Error::other("it was closed when duel was started"));
        }
        let out = rustix::stdio::stdout();
        loop {
            match rustix::io::write(out, bytes) {
                // A pipe that somebody else has made non-blocking, and that is full.
                Err(rustix::io::Errno::AGAIN) => {
                    use rustix::event::{PollFd, PollFlags, poll};
                    poll(&mut [PollFd::new(&out, PollFlags::OUT)], None)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
