//! TUN interfaces: IP packets as reads and writes.

use anyhow::Context;
use rustix::fs::{Mode, OFlags, open};
use rustix::ioctl::{Setter, ioctl, opcode};
use std::os::fd::OwnedFd;

/// Makes an interface in the namespace of this process; it goes away when the descriptor is closed, or moves with `ip
/// link set NAME netns OTHER` and stays connected. Reads do not block.
pub(crate) fn open_tun(name: &str) -> anyhow::Result<OwnedFd> {
    let fd = open("/dev/net/tun", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())
        .context("/dev/net/tun is needed to relay packets")?;
    attach(&fd, name).with_context(|| format!("could not make the interface {name}"))?;
    Ok(fd)
}

/// `struct ifreq` of linux/if.h, as far as `TUNSETIFF` reads it: the name, then the flags, then padding to its 40 bytes.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    padding: [u8; 22],
}

#[expect(unsafe_code, reason = "rustix knows no safe form of TUNSETIFF, and no smaller crate has one")]
fn attach(fd: &OwnedFd, name: &str) -> anyhow::Result<()> {
    /// `_IOW('T', 202, int)`: linux/if_tun.h says int, though the kernel reads a whole `ifreq`.
    const TUNSETIFF: u32 = opcode::write::<i32>(b'T', 202) as u32;
    /// Packets without Ethernet headers, and without four bytes of flags before each.
    const IFF_TUN_AND_NO_PI: u16 = 0x0001 | 0x1000;

    anyhow::ensure!(name.len() < 16, "the name of an interface has at most 15 bytes");
    let mut request = Request { name: [0; 16], flags: IFF_TUN_AND_NO_PI, padding: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads an `ifreq`, whose layout and size `Request` has, and keeps no reference to it.
    unsafe { ioctl(fd, Setter::<{ TUNSETIFF as _ }, Request>::new(request))? };
    Ok(())
}
