//! An io_uring with the buffers that the kernel reads and writes, behind functions that cannot be used wrongly.
//!
//! All of this room's `unsafe` code is here. Handing memory to the kernel is what the compiler cannot look after; so this file
//! does: buffers belong to the ring, each carries one call at a time, nobody can look at one while the kernel has it, and none is
//! freed before its call has ended.
#![expect(unsafe_code, reason = "memory is handed to the kernel")]

use crate::buffer::Buffer;
use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// How long a ring that is dropped waits for calls under way. A device that hangs for longer keeps its buffers: they are never
/// freed then.
const LAST_WAIT_S: u64 = 10;

/// A ring on one file.
pub(crate) struct Ring {
    uring: IoUring,
    slots: Vec<Slot>,
    /// Buffers below this number are known to the kernel beforehand.
    registered: usize,
    under_way: usize,
    unsent: usize,
    /// Open as long as the ring.
    _file: Arc<File>,
}

struct Slot {
    buffer: Buffer,
    is_under_way: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("slots", &self.slots.len()).field("under_way", &self.under_way).finish()
    }
}

impl Ring {
    /// A ring for calls on a file, of which as many can be under way as there are buffers.
    pub(crate) fn new(file: Arc<File>, buffers: usize, bytes: usize) -> io::Result<Self> {
        let entries = u32::try_from(buffers.max(2).next_power_of_two()).unwrap_or(u32::MAX);
        let mut uring = build(entries)?;
        let slots: Vec<Slot> = (0..buffers).map(|_| Slot { buffer: Buffer::new(bytes), is_under_way: false }).collect();
        uring.submitter().register_files(&[file.as_raw_fd()])?;
        // Where memory may not be pinned beforehand, each call pins its own.
        let vectors: Vec<libc::iovec> = slots
            .iter()
            .map(|slot| libc::iovec { iov_base: slot.buffer.get().as_ptr().cast_mut().cast(), iov_len: bytes })
            .collect();
        // SAFETY: the memory is this ring's own and not freed before the ring is: see `drop`.
        let is_registered = unsafe { uring.submitter().register_buffers(&vectors) }.is_ok();
        let registered = if is_registered { buffers } else { 0 };
        uring.completion().sync();
        Ok(Self { uring, slots, registered, under_way: 0, unsent: 0, _file: file })
    }

    /// What becomes readable when calls have ended.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the ring, which is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.uring.as_raw_fd()) }
    }

    /// Whether something was begun that the kernel does not know of.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// One buffer more; answers its number.
    pub(crate) fn add_buffer(&mut self, bytes: usize) -> usize {
        self.slots.push(Slot { buffer: Buffer::new(bytes), is_under_way: false });
        self.slots.len() - 1
    }

    /// A buffer, unless the kernel has it.
    pub(crate) fn buffer(&mut self, slot: usize) -> Option<&mut [u8]> {
        self.slots.get_mut(slot).filter(|slot| !slot.is_under_way).map(|slot| slot.buffer.get_mut())
    }

    /// Begins to read at this place of the file into a whole buffer.
    pub(crate) fn read(&mut self, slot: usize, offset: u64) -> io::Result<()> {
        let (memory, bytes) = self.memory(slot)?;
        let entry = if slot < self.registered {
            opcode::ReadFixed::new(Fixed(0), memory, bytes, slot as u16).offset(offset).build()
        } else {
            opcode::Read::new(Fixed(0), memory, bytes).offset(offset).build()
        };
        self.push(slot, entry)
    }

    /// Begins to write a whole buffer at this place of the file.
    pub(crate) fn write(&mut self, slot: usize, offset: u64) -> io::Result<()> {
        let (memory, bytes) = self.memory(slot)?;
        let entry = if slot < self.registered {
            opcode::WriteFixed::new(Fixed(0), memory, bytes, slot as u16).offset(offset).build()
        } else {
            opcode::Write::new(Fixed(0), memory, bytes).offset(offset).build()
        };
        self.push(slot, entry)
    }

    /// Begins to flush the file; the slot is taken meanwhile.
    pub(crate) fn flush(&mut self, slot: usize) -> io::Result<()> {
        self.memory(slot)?;
        self.push(slot, opcode::Fsync::new(Fixed(0)).flags(FsyncFlags::empty()).build())
    }

    /// Whether calls have ended that the kernel tells of when it is entered: it waits to be asked, or its queue was full.
    pub(crate) fn is_pending(&mut self) -> bool {
        let queue = self.uring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    /// Enters the kernel: hands all that was begun to it, and has it tell of what has ended.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        if self.unsent == 0 && !self.is_pending() {
            return Ok(());
        }
        match self.uring.submit() {
            Ok(sent) => {
                self.unsent = self.unsent.saturating_sub(sent);
                Ok(())
            }
            // The kernel is short of something, or was interrupted: what is left goes with the next call.
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// How many calls that have ended are told of by now. A time that is looked at after this is one by which they all had ended;
    /// of those that are told of meanwhile it is not.
    pub(crate) fn told(&mut self) -> usize {
        self.uring.completion().len()
    }

    /// A call that has ended: its slot, and what the system said of it. Never enters the kernel.
    pub(crate) fn ended(&mut self) -> Option<(usize, io::Result<usize>)> {
        let entry = self.uring.completion().next()?;
        let slot = entry.user_data() as usize;
        self.slots[slot].is_under_way = false;
        self.under_way -= 1;
        let said = entry.result();
        Some((slot, usize::try_from(said).map_err(|_| io::Error::from_raw_os_error(-said))))
    }

    fn memory(&mut self, slot: usize) -> io::Result<(*mut u8, u32)> {
        let buffer = self.buffer(slot).ok_or_else(|| io::Error::other("the buffer is in use"))?;
        Ok((buffer.as_mut_ptr(), u32::try_from(buffer.len()).unwrap_or(u32::MAX)))
    }

    /// Calls that the kernel has, and has not told the end of.
    fn with_kernel(&mut self) -> usize {
        self.under_way.saturating_sub(self.unsent + self.told())
    }

    /// Calls are handed to the kernel as soon as it has no more of them than wait to be handed over. A device that is done with all
    /// that it had gets the next call at once, and is at work while the others are begun; one that is busy gets them together, which
    /// takes less time of the CPU.
    fn push(&mut self, slot: usize, entry: squeue::Entry) -> io::Result<()> {
        let entry = entry.user_data(slot as u64);
        if self.uring.submission().is_full() {
            self.enter()?;
        }
        // SAFETY: the entry's memory is the slot's, of the length that it says; nobody gets at it, and it is not freed, until the
        // call has ended.
        unsafe { self.uring.submission().push(&entry) }.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        self.slots[slot].is_under_way = true;
        self.under_way += 1;
        self.unsent += 1;
        if self.unsent >= self.with_kernel() {
            // The call stands in the queue either way. What is wrong is said when the rest is handed over.
            let _ = self.enter();
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let patience = Timespec::new().sec(LAST_WAIT_S);
        while self.under_way > 0 {
            let waited = self.uring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&patience));
            let before = self.under_way;
            while self.ended().is_some() {}
            if waited.is_err_and(|error| !is_passing(&error)) && self.under_way == before {
                break;
            }
        }
        if self.under_way > 0 {
            std::mem::forget(std::mem::take(&mut self.slots));
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy)
}

/// Whether the kernel lets this process have a ring; what it says if not.
pub(crate) fn is_allowed() -> io::Result<()> {
    build(2).map(drop)
}

/// A ring whose thread is not interrupted while it runs: what has ended is told when it next enters the kernel. Older kernels make
/// a plain one. Rejected: `IORING_SETUP_DEFER_TASKRUN`, with which nobody who waits for the descriptor is woken.
fn build(entries: u32) -> io::Result<IoUring> {
    let mut asking = IoUring::builder();
    asking.setup_clamp().setup_single_issuer().setup_coop_taskrun().setup_taskrun_flag();
    asking.build(entries).or_else(|_| IoUring::builder().setup_clamp().build(entries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn wait(ring: &mut Ring) -> (usize, io::Result<usize>) {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            ring.enter().unwrap();
            if let Some(ended) = ring.ended() {
                return ended;
            }
            assert!(std::time::Instant::now() < until, "no call ends");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_buffer_is_out_of_reach_while_the_kernel_has_it() {
        if let Err(error) = is_allowed() {
            println!("skipped: no io_uring here: {error}");
            return;
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 8192]).unwrap();
        let mut ring = Ring::new(Arc::new(file), 2, 4096).unwrap();
        ring.read(1, 4096).unwrap();
        assert!(ring.buffer(1).is_none() && ring.buffer(0).is_some() && ring.buffer(2).is_none());
        assert!(ring.read(1, 0).is_err(), "one call at a time");
        let (slot, read) = wait(&mut ring);
        assert_eq!((slot, read.unwrap()), (1, 4096));
        assert_eq!(ring.buffer(1).unwrap(), [7; 4096]);
        // Beyond those that are registered, too.
        let further = ring.add_buffer(4096);
        ring.buffer(further).unwrap().fill(9);
        ring.write(further, 0).unwrap();
        assert_eq!(wait(&mut ring).1.unwrap(), 4096);
        ring.flush(0).unwrap();
        assert_eq!(wait(&mut ring).1.unwrap(), 0);
        ring.read(0, 0).unwrap();
        wait(&mut ring).1.unwrap();
        assert_eq!(ring.buffer(0).unwrap(), [9; 4096]);
        // The end of the file is no error, but fewer bytes.
        ring.read(0, 8192).unwrap();
        assert_eq!(wait(&mut ring).1.unwrap(), 0);
        // A call under way when the ring goes is waited for.
        ring.read(0, 0).unwrap();
    }
    #[test]
    fn the_kernel_gets_the_next_call_at_once_and_further_ones_together() {
        if let Err(error) = is_allowed() {
            println!("skipped: no io_uring here: {error}");
            return;
        }
        // Nobody writes, so no call ends.
        let (reader, writer) = io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(reader));
        let mut ring = Ring::new(Arc::new(file), 8, 4096).unwrap();
        let unsent: Vec<usize> = (0..8)
            .map(|slot| {
                ring.read(slot, 0).unwrap();
                ring.unsent
            })
            .collect();
        assert_eq!(unsent, [0, 0, 1, 0, 1, 2, 3, 0]);
        drop(writer);
        for _ in 0..8 {
            assert_eq!(wait(&mut ring).1.unwrap(), 0, "the end of the pipe");
        }
        ring.read(0, 0).unwrap();
        assert_eq!(ring.unsent, 0, "it has nothing left");
    }
}
