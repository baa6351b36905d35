//! A libcrypto loaded at run time. The only file here with `unsafe`: a foreign library cannot be called without.
//!
//! Nothing of the library's memory is ever given back: the process that loads it is a child that measures and exits.
//! What is unsound about a library that is not what it claims to be (a constructor that writes anywhere, an
//! `EVP_EncryptUpdate` of another signature) can only hurt that child.
#![expect(unsafe_code, reason = "a library loaded at run time is called through pointers to its functions")]

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

/// What the library calls `EVP_CIPHER`, `EVP_PKEY` and so on: never looked into.
type Opaque = *mut c_void;

/// Bytes that a cipher may write beyond its input: one block of padding.
const ROOM_FOR_PADDING: usize = 32;
/// `EVP_CTRL_GCM_GET_TAG`, `EVP_CTRL_AEAD_GET_TAG`.
const CTRL_GET_TAG: c_int = 0x10;
/// Bytes of the tags of GCM and Poly1305.
const TAG_BYTES: usize = 16;

/// A library, open until the process ends.
pub(crate) struct Libcrypto {
    library: Library,
}

unsafe extern "C" {
    safe fn _exit(status: c_int) -> !;
}

/// Ends the process at once: a foreign library's exit handlers have had their chance to crash.
pub(crate) fn exit_now(status: i32) -> ! {
    _exit(status)
}

impl Libcrypto {
    /// Loads a library, and runs its constructors. The error is the loader's own text.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: constructors of a foreign library are arbitrary code, which is why this process is expendable. The
        // library is never closed, so no pointer into it dangles.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
            // The loader's words are the source of libloading's.
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })?;
        Ok(Self { library })
    }

    /// The address of a function of type `F`.
    ///
    /// # Safety
    ///
    /// `F` must be the function's type in every library that exports the name: that of OpenSSL's headers.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        let symbol = format!("{name}\0");
        // SAFETY: the type is the caller's promise.
        let found = unsafe { self.library.get::<F>(symbol.as_bytes()) };
        found.map(|f| *f).map_err(|_| format!("the library has no {name}"))
    }

    /// Where a function is in memory.
    pub(crate) fn address(&self, name: &str) -> Result<u64, String> {
        // SAFETY: any symbol has an address, and what is there is neither read nor called.
        let address = unsafe { self.function::<*const c_void>(name) }?;
        Ok(address.addr() as u64)
    }

    /// The text that `function(what)` returns, where the library has the function.
    pub(crate) fn text(&self, function: &str, what: i32) -> Option<String> {
        // SAFETY: OpenSSL_version, SSLeay_version and OPENSSL_info are all `const char *(int)`.
        let tell = unsafe { self.function::<unsafe extern "C" fn(c_int) -> *const c_char>(function) }.ok()?;
        // SAFETY: they take any number, and return a static text or null.
        let text = unsafe { tell(what) };
        // SAFETY: not null, and ended by a zero.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    /// What the library's error queue says first, behind the name of the function that failed.
    fn failed(&self, function: &str) -> String {
        // SAFETY: types as in openssl/err.h of every version.
        let (code, text) = unsafe {
            (
                self.function::<unsafe extern "C" fn() -> c_ulong>("ERR_get_error"),
                self.function::<unsafe extern "C" fn(c_ulong, *mut c_char, usize)>("ERR_error_string_n"),
            )
        };
        let (Ok(code), Ok(text)) = (code, text) else { return format!("{function} failed") };
        let mut buffer = [0_u8; 256];
        // SAFETY: the buffer is as long as told; the function ends it with a zero.
        unsafe { text(code(), buffer.as_mut_ptr().cast(), buffer.len()) };
        let said = CStr::from_bytes_until_nul(&buffer).map(CStr::to_string_lossy).unwrap_or_default();
        format!("{function} failed: {said}")
    }

    /// An object made by a function without parameters.
    fn made(&self, name: &str) -> Result<Opaque, String> {
        // SAFETY: used for EVP_aes_*, EVP_chacha20_poly1305, EVP_sha256 and EVP_*_CTX_new: all `T *(void)`.
        let make = unsafe { self.function::<unsafe extern "C" fn() -> Opaque>(name) }?;
        // SAFETY: no parameters, no conditions.
        let object = unsafe { make() };
        if object.is_null() { Err(self.failed(name)) } else { Ok(object) }
    }
}

type EncryptInit = unsafe extern "C" fn(Opaque, Opaque, Opaque, *const c_uchar, *const c_uchar) -> c_int;
type EncryptUpdate = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_int, *const c_uchar, c_int) -> c_int;
type EncryptFinal = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_int) -> c_int;
type Control = unsafe extern "C" fn(Opaque, c_int, c_int, *mut c_void) -> c_int;

/// Encrypts blocks of one size as TLS does records: a nonce, the data, the end and, of an AEAD, the tag.
pub(crate) struct Sealer<'l> {
    library: &'l Libcrypto,
    context: Opaque,
    init: EncryptInit,
    update: EncryptUpdate,
    finish: EncryptFinal,
    control: Option<Control>,
    input: Vec<u8>,
    output: Vec<u8>,
    nonce: [u8; 16],
}

impl<'l> Sealer<'l> {
    /// With the cipher that `cipher` (such as `EVP_aes_256_gcm`) returns. `aead`: it has a tag.
    pub(crate) fn new(library: &'l Libcrypto, cipher: &str, aead: bool, block_bytes: u32) -> Result<Self, String> {
        let kind = library.made(cipher)?;
        let context = library.made("EVP_CIPHER_CTX_new")?;
        // SAFETY: types as in openssl/evp.h; `int` for lengths in every version, OpenSSL 3 included.
        let (init, update, finish, control) = unsafe {
            (
                library.function::<EncryptInit>("EVP_EncryptInit_ex")?,
                library.function::<EncryptUpdate>("EVP_EncryptUpdate")?,
                library.function::<EncryptFinal>("EVP_EncryptFinal_ex")?,
                if aead { Some(library.function::<Control>("EVP_CIPHER_CTX_ctrl")?) } else { None },
            )
        };
        let key = [0x5a_u8; 32];
        let nonce = [0x0f_u8; 16];
        // SAFETY: no cipher here has a key longer than 32 bytes or a nonce longer than 16.
        if unsafe { init(context, kind, null_mut(), key.as_ptr(), nonce.as_ptr()) } != 1 {
            return Err(library.failed("EVP_EncryptInit_ex"));
        }
        let input = vec![0xa5; block_bytes as usize];
        let output = vec![0; block_bytes as usize + ROOM_FOR_PADDING];
        Ok(Self { library, context, init, update, finish, control, input, output, nonce })
    }

    /// Seals one block.
    pub(crate) fn seal(&mut self) -> Result<(), String> {
        // A nonce must not come twice; libraries may insist.
        for byte in &mut self.nonce {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        let (mut written, mut tail) = (0, 0);
        let mut tag = [0_u8; TAG_BYTES];
        // SAFETY: the context has its cipher and key. The output has room for the input and a block of padding, which
        // is the most that update and final write together; the tag is as long as told.
        let failed = unsafe {
            if (self.init)(self.context, null_mut(), null_mut(), null(), self.nonce.as_ptr()) != 1 {
                Some("EVP_EncryptInit_ex")
            } else if (self.update)(
                self.context,
                self.output.as_mut_ptr(),
                &mut written,
                self.input.as_ptr(),
                self.input.len() as c_int,
            ) != 1
                || !(0..=self.input.len() as c_int).contains(&written)
            {
                Some("EVP_EncryptUpdate")
            } else if (self.finish)(self.context, self.output.as_mut_ptr().add(written as usize), &mut tail) != 1 {
                Some("EVP_EncryptFinal_ex")
            } else if let Some(control) = self.control
                && control(self.context, CTRL_GET_TAG, TAG_BYTES as c_int, tag.as_mut_ptr().cast()) != 1
            {
                Some("EVP_CIPHER_CTX_ctrl")
            } else {
                None
            }
        };
        failed.map_or(Ok(()), |function| Err(self.library.failed(function)))
    }
}

type DigestInit = unsafe extern "C" fn(Opaque, Opaque, Opaque) -> c_int;
type DigestUpdate = unsafe extern "C" fn(Opaque, *const c_void, usize) -> c_int;
type DigestFinal = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut c_uint) -> c_int;

/// SHA-256 of blocks of one size.
pub(crate) struct Hasher<'l> {
    library: &'l Libcrypto,
    context: Opaque,
    kind: Opaque,
    init: DigestInit,
    update: DigestUpdate,
    finish: DigestFinal,
    input: Vec<u8>,
}

impl<'l> Hasher<'l> {
    pub(crate) fn new(library: &'l Libcrypto, block_bytes: u32) -> Result<Self, String> {
        let kind = library.made("EVP_sha256")?;
        // Before 1.1.0 it had the other name.
        let context = library.made("EVP_MD_CTX_new").or_else(|_| library.made("EVP_MD_CTX_create"))?;
        // SAFETY: types as in openssl/evp.h.
        let (init, update, finish) = unsafe {
            (
                library.function::<DigestInit>("EVP_DigestInit_ex")?,
                library.function::<DigestUpdate>("EVP_DigestUpdate")?,
                library.function::<DigestFinal>("EVP_DigestFinal_ex")?,
            )
        };
        Ok(Self { library, context, kind, init, update, finish, input: vec![0xa5; block_bytes as usize] })
    }

    /// Hashes one block.
    pub(crate) fn hash(&mut self) -> Result<(), String> {
        // `EVP_MAX_MD_SIZE`.
        let mut digest = [0_u8; 64];
        let mut length: c_uint = 0;
        // SAFETY: the input is as long as told, and no digest is longer than the room for it.
        let done = unsafe {
            (self.init)(self.context, self.kind, null_mut()) == 1
                && (self.update)(self.context, self.input.as_ptr().cast(), self.input.len()) == 1
                && (self.finish)(self.context, digest.as_mut_ptr(), &mut length) == 1
        };
        if done { Ok(()) } else { Err(self.library.failed("EVP_Digest")) }
    }
}

type KeyStep = unsafe extern "C" fn(Opaque) -> c_int;
type Sign = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut usize, *const c_uchar, usize) -> c_int;
type SetPeer = unsafe extern "C" fn(Opaque, Opaque) -> c_int;
type Derive = unsafe extern "C" fn(Opaque, *mut c_uchar, *mut usize) -> c_int;

/// What a private key is used for.
enum KeyUse {
    Sign(Sign),
    Derive(Derive),
}

/// Signs a digest, or agrees on a key.
pub(crate) struct KeyWorker<'l> {
    library: &'l Libcrypto,
    context: Opaque,
    work: KeyUse,
}

/// Longest signature or shared secret here: RSA-4096.
const LONGEST_RESULT_BYTES: usize = 512;

impl<'l> KeyWorker<'l> {
    /// Signs a digest of 32 bytes with a private key in DER.
    pub(crate) fn signer(library: &'l Libcrypto, key_der: &[u8]) -> Result<Self, String> {
        let (_, context) = Self::context(library, key_der)?;
        Self::step(library, context, "EVP_PKEY_sign_init")?;
        // SAFETY: type as in openssl/evp.h.
        let sign = unsafe { library.function::<Sign>("EVP_PKEY_sign") }?;
        Ok(Self { library, context, work: KeyUse::Sign(sign) })
    }

    /// Agrees on a key with itself: its own public key is as good a peer as any.
    pub(crate) fn deriver(library: &'l Libcrypto, key_der: &[u8]) -> Result<Self, String> {
        let (key, context) = Self::context(library, key_der)?;
        Self::step(library, context, "EVP_PKEY_derive_init")?;
        // SAFETY: types as in openssl/evp.h.
        let (set_peer, derive) = unsafe {
            (library.function::<SetPeer>("EVP_PKEY_derive_set_peer")?, library.function::<Derive>("EVP_PKEY_derive")?)
        };
        // SAFETY: a context ready to derive, and a key of the same kind.
        if unsafe { set_peer(context, key) } != 1 {
            return Err(library.failed("EVP_PKEY_derive_set_peer"));
        }
        Ok(Self { library, context, work: KeyUse::Derive(derive) })
    }

    /// One signature, or one shared secret.
    pub(crate) fn work(&mut self) -> Result<(), String> {
        let mut result = [0_u8; LONGEST_RESULT_BYTES];
        let mut length = result.len();
        let digest = [0x3c_u8; 32];
        // SAFETY: the context has been made ready for this use; the result has room for what the largest key gives, and
        // its length is told.
        let (done, function) = unsafe {
            match self.work {
                KeyUse::Sign(sign) => (
                    sign(self.context, result.as_mut_ptr(), &mut length, digest.as_ptr(), digest.len()),
                    "EVP_PKEY_sign",
                ),
                KeyUse::Derive(derive) => (derive(self.context, result.as_mut_ptr(), &mut length), "EVP_PKEY_derive"),
            }
        };
        if done == 1 { Ok(()) } else { Err(self.library.failed(function)) }
    }

    fn context(library: &Libcrypto, key_der: &[u8]) -> Result<(Opaque, Opaque), String> {
        type FromDer = unsafe extern "C" fn(*mut Opaque, *mut *const c_uchar, c_long) -> Opaque;
        type NewContext = unsafe extern "C" fn(Opaque, Opaque) -> Opaque;
        // SAFETY: types as in openssl/evp.h.
        let (from_der, new_context) = unsafe {
            (library.function::<FromDer>("d2i_AutoPrivateKey")?, library.function::<NewContext>("EVP_PKEY_CTX_new")?)
        };
        let mut der = key_der.as_ptr();
        // SAFETY: the function reads at most as many bytes as told, and moves its own pointer past them.
        let key = unsafe { from_der(null_mut(), &mut der, key_der.len() as c_long) };
        if key.is_null() {
            return Err(library.failed("d2i_AutoPrivateKey"));
        }
        // SAFETY: a key, and no engine.
        let context = unsafe { new_context(key, null_mut()) };
        if context.is_null() { Err(library.failed("EVP_PKEY_CTX_new")) } else { Ok((key, context)) }
    }

    fn step(library: &Libcrypto, context: Opaque, name: &str) -> Result<(), String> {
        // SAFETY: EVP_PKEY_sign_init and EVP_PKEY_derive_init are `int (EVP_PKEY_CTX *)`.
        let step = unsafe { library.function::<KeyStep>(name) }?;
        // SAFETY: a context with a key.
        if unsafe { step(context) } == 1 { Ok(()) } else { Err(library.failed(name)) }
    }
}
