//! FreeBSD: `/dev/crypto` (crypto(4)). A session has an algorithm and a key; each call names it, and says where data lies.
#![expect(
    unsafe_code,
    reason = "ioctl has no safe form: the kernel reads and writes through pointers in its arguments"
)]

use super::Interface;
use super::algorithm::Algorithm;
use super::engine::TAG;
use nix::errno::Errno;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};

/// `struct session2_op` of crypto/cryptodev.h.
#[repr(C)]
struct NewSession {
    cipher: u32,
    mac: u32,
    key_bytes: u32,
    key: *const c_void,
    mac_key_bytes: c_int,
    mac_key: *const c_void,
    session: u32,
    driver: c_int,
    iv_bytes: c_int,
    mac_bytes: c_int,
    padding: [c_int; 2],
}

/// `struct crypt_op`.
#[repr(C)]
struct Op {
    session: u32,
    op: u16,
    flags: u16,
    bytes: c_uint,
    from: *const c_void,
    to: *mut c_void,
    mac: *mut c_void,
    iv: *const c_void,
}

/// `struct crypt_aead`.
#[repr(C)]
struct AeadOp {
    session: u32,
    op: u16,
    flags: u16,
    bytes: c_uint,
    aad_bytes: c_uint,
    iv_bytes: c_uint,
    from: *const c_void,
    to: *mut c_void,
    aad: *const c_void,
    tag: *mut c_void,
    iv: *const c_void,
}

/// `struct crypt_find_op`.
#[repr(C)]
struct Find {
    driver: c_int,
    name: [c_char; 32],
}

nix::ioctl_readwrite!(new_session, b'c', 106, NewSession);
nix::ioctl_write_ptr!(end_session, b'c', 102, u32);
nix::ioctl_readwrite!(do_op, b'c', 103, Op);
nix::ioctl_readwrite!(do_aead, b'c', 109, AeadOp);
nix::ioctl_readwrite!(find_driver, b'c', 108, Find);

/// `CRYPTO_FLAG_HARDWARE | CRYPTO_FLAG_SOFTWARE`: whatever the kernel prefers.
const ANY_DRIVER: c_int = 0x0300_0000;
const ENCRYPT: u16 = 1;
const DECRYPT: u16 = 2;

/// An algorithm of the kernel.
pub(super) struct DevCrypto {
    device: File,
    algorithm: Algorithm,
    driver: c_int,
    session: Option<u32>,
    /// Where a stream has come to.
    iv: [u8; 16],
}

impl DevCrypto {
    pub(super) fn open(algorithm: Algorithm, wanted: Option<&str>, _message_bytes: usize) -> Result<Self, String> {
        if number(&algorithm).is_none() {
            return Err(format!("/dev/crypto has no {}", algorithm.name));
        }
        let device =
            File::options().read(true).write(true).open("/dev/crypto").map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    "not available here: there is no /dev/crypto (`kldload cryptodev` as root makes it)".to_owned()
                }
                std::io::ErrorKind::PermissionDenied => "not permitted here: /dev/crypto cannot be opened".to_owned(),
                _ => format!("not available here: /dev/crypto: {error}"),
            })?;
        let driver = wanted.map_or(Ok(ANY_DRIVER), |wanted| found(&device, wanted))?;
        let mut opened = Self { device, algorithm, driver, session: None, iv: [0; 16] };
        if algorithm.key_bytes == 0 {
            opened.begin(&[])?;
        }
        Ok(opened)
    }

    /// A session with this key in the place of the one before.
    fn begin(&mut self, key: &[u8]) -> Result<(), String> {
        self.end();
        let number = number(&self.algorithm).unwrap_or(0);
        let is_digest = self.algorithm.kind == "hash";
        let mut new = NewSession {
            cipher: if is_digest { 0 } else { number },
            mac: if is_digest { number } else { 0 },
            key_bytes: key.len() as u32,
            key: if key.is_empty() { null() } else { key.as_ptr().cast() },
            mac_key_bytes: 0,
            mac_key: null(),
            session: 0,
            driver: self.driver,
            iv_bytes: 0,
            mac_bytes: 0,
            padding: [0; 2],
        };
        // SAFETY: the structure is the kernel's, and the key is as long as told.
        match unsafe { new_session(self.device.as_raw_fd(), &raw mut new) } {
            Ok(_) => self.session = Some(new.session),
            // crypto(4): no driver that is allowed supports the algorithm.
            Err(Errno::EINVAL | Errno::EOPNOTSUPP) => {
                return Err(format!("this kernel has no driver for {} that programs may use", self.algorithm.name));
            }
            Err(errno) => return Err(failed(errno)),
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(session) = self.session.take() {
            // SAFETY: the kernel reads one number.
            let _ = unsafe { end_session(self.device.as_raw_fd(), &raw const session) };
        }
    }

    fn session(&self) -> Result<u32, String> {
        self.session.ok_or_else(|| "there is no session".to_owned())
    }
}

impl Drop for DevCrypto {
    fn drop(&mut self) {
        self.end();
    }
}

impl Interface for DevCrypto {
    fn key(&mut self, key: &[u8]) -> Result<(), String> {
        self.begin(key)
    }

    fn cipher(
        &mut self,
        decrypt: bool,
        iv: Option<&[u8]>,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String> {
        let session = self.session()?;
        if let Some(iv) = iv {
            self.iv[..iv.len().min(16)].copy_from_slice(&iv[..iv.len().min(16)]);
        }
        let most = chunk.clamp(1, from.len().max(1));
        for (from, to) in from.chunks(most).zip(to.chunks_mut(most)) {
            let mut op = Op {
                session,
                op: if decrypt { DECRYPT } else { ENCRYPT },
                flags: 0,
                bytes: from.len() as c_uint,
                from: from.as_ptr().cast(),
                to: to.as_mut_ptr().cast(),
                mac: null_mut(),
                iv: self.iv.as_ptr().cast(),
            };
            // SAFETY: input and output are both as long as told; no cipher here reads an IV longer than 16 bytes.
            unsafe { do_op(self.device.as_raw_fd(), &raw mut op) }.map_err(failed)?;
            // The kernel keeps no stream: where it goes on is ours to know.
            match self.algorithm.name {
                "cbc(aes)" => {
                    if let Some(last) = if decrypt { from } else { to }.last_chunk::<16>() {
                        self.iv = *last;
                    }
                }
                "ctr(aes)" => {
                    let blocks = from.len().div_ceil(16) as u128;
                    self.iv = u128::from_be_bytes(self.iv).wrapping_add(blocks).to_be_bytes();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn aead(
        &mut self,
        decrypt: bool,
        iv: &[u8],
        aad: usize,
        from: &[u8],
        to: &mut [u8],
        chunk: usize,
    ) -> Result<(), String> {
        if chunk < from.len() {
            return Err("/dev/crypto takes a message in one call; leave --chunk out".to_owned());
        }
        let (tag_of, room) = if decrypt { (from.len().saturating_sub(TAG), 0) } else { (from.len(), TAG) };
        let text = tag_of.saturating_sub(aad);
        if to.len() < aad + text + room || aad > tag_of {
            return Err("a message is shorter than its parts".to_owned());
        }
        let mut tag = [0_u8; TAG];
        if decrypt {
            tag.copy_from_slice(&from[tag_of..]);
        }
        let (head, rest) = to.split_at_mut(aad);
        head.copy_from_slice(&from[..aad]);
        let mut op = AeadOp {
            session: self.session()?,
            op: if decrypt { DECRYPT } else { ENCRYPT },
            flags: 0,
            bytes: text as c_uint,
            aad_bytes: aad as c_uint,
            iv_bytes: iv.len() as c_uint,
            from: from[aad..].as_ptr().cast(),
            to: rest.as_mut_ptr().cast(),
            aad: from.as_ptr().cast(),
            tag: tag.as_mut_ptr().cast(),
            iv: iv.as_ptr().cast(),
        };
        // SAFETY: additional data, text, room for the text, tag and nonce are all as long as told.
        match unsafe { do_aead(self.device.as_raw_fd(), &raw mut op) } {
            Ok(_) if !decrypt => rest[text..text + TAG].copy_from_slice(&tag),
            Ok(_) => {}
            Err(Errno::EBADMSG) => return Err("the kernel found a wrong tag".to_owned()),
            Err(errno) => return Err(failed(errno)),
        }
        Ok(())
    }

    fn digest(&mut self, message: &[u8], to: &mut [u8], chunk: usize) -> Result<(), String> {
        if chunk < message.len() {
            return Err("/dev/crypto takes a message in one call; leave --chunk out".to_owned());
        }
        // The kernel writes as many bytes as its algorithm has.
        let mut made = [0_u8; 64];
        let mut op = Op {
            session: self.session()?,
            op: ENCRYPT,
            flags: 0,
            bytes: message.len() as c_uint,
            from: message.as_ptr().cast(),
            to: null_mut(),
            mac: made.as_mut_ptr().cast(),
            iv: null(),
        };
        // SAFETY: the message is as long as told, and no digest is longer than the room for it.
        unsafe { do_op(self.device.as_raw_fd(), &raw mut op) }.map_err(failed)?;
        to.copy_from_slice(&made[..to.len()]);
        Ok(())
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let system = rustix::system::uname();
        let (name, release) = (system.sysname().to_string_lossy(), system.release().to_string_lossy());
        vec![("version", format!("{name} {release}")), ("library", "the kernel, by /dev/crypto".to_owned())]
    }
}

/// The algorithm's number in cryptodev.h.
fn number(algorithm: &Algorithm) -> Option<u32> {
    Some(match algorithm.name {
        "cbc(aes)" => 11,
        "xts(aes)" => 22,
        "ctr(aes)" => 23,
        "gcm(aes)" => 25,
        "rfc7539(chacha20,poly1305)" => 41,
        "sha1" => 14,
        "blake2b-512" => 29,
        "blake2s-256" => 30,
        "sha224" => 34,
        "sha256" => 35,
        "sha384" => 36,
        "sha512" => 37,
        _ => return None,
    })
}

/// A driver by its name, such as `aesni0`.
fn found(device: &File, wanted: &str) -> Result<c_int, String> {
    let mut find = Find { driver: -1, name: [0; 32] };
    let none = || format!("this kernel has no crypto driver {wanted}");
    if wanted.len() >= find.name.len() {
        return Err(none());
    }
    for (to, byte) in find.name.iter_mut().zip(wanted.bytes()) {
        *to = byte as c_char;
    }
    // SAFETY: the structure is the kernel's, and its name is ended by a zero.
    unsafe { find_driver(device.as_raw_fd(), &raw mut find) }.map_err(|_| none())?;
    Ok(find.driver)
}

fn failed(errno: Errno) -> String {
    format!("the kernel refuses it: {}", errno.desc())
}
