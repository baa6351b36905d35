//! A libcrypto: loaded at run time, or the one that this program is built with.
#![expect(unsafe_code, reason = "a library loaded at run time is called through pointers to its functions")]

use libloading::os::unix::{Library as Loaded, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;

/// What the library calls `EVP_CIPHER`, `EVP_PKEY` and so on: never looked into.
pub(crate) type Opaque = *mut c_void;

/// A library, open until the process ends: no pointer into it dangles.
pub(crate) enum Library {
    /// By its file.
    Loaded(Loaded),
    /// AWS-LC, which is part of this program.
    BuiltIn,
}

/// The names under which systems have their OpenSSL.
const SYSTEM: [&str; 5] =
    ["libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so", "libcrypto.3.dylib", "libcrypto.dylib"];

/// Functions of AWS-LC by their names.
macro_rules! built_in {
    ($wanted:expr; $($name:ident),+ $(,)?) => {
        match $wanted {
            $(stringify!($name) => Some(aws_lc_sys::$name as *const c_void),)+
            _ => None,
        }
    };
}

impl Library {
    /// Loads a library, and runs its constructors; `None`: the system's. The error is the loader's own text.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, String> {
        let load = |path: &Path| {
            // SAFETY: constructors of a foreign library are arbitrary code, which is why this process is expendable.
            unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Self::Loaded).map_err(|error| {
                // The loader's words are the source of libloading's.
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
            })
        };
        match path {
            Some(path) => load(path),
            None => SYSTEM.iter().find_map(|name| load(Path::new(name)).ok()).ok_or_else(|| {
                format!(
                    "this system has no OpenSSL under any of the names {}; give its path: openssl:PATH",
                    SYSTEM.join(", ")
                )
            }),
        }
    }

    /// The address of a function of type `F`.
    ///
    /// # Safety
    ///
    /// `F` must be the function's type in every library that exports the name: that of OpenSSL's headers.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        match self {
            Self::Loaded(library) => {
                let symbol = format!("{name}\0");
                // SAFETY: the type is the caller's promise.
                let found = unsafe { library.get::<F>(symbol.as_bytes()) };
                found.map(|f| *f).map_err(|_| format!("the library has no {name}"))
            }
            Self::BuiltIn => {
                let address = address_in_aws_lc(name).ok_or_else(|| format!("the library has no {name}"))?;
                // SAFETY: a pointer to a function has the size of any pointer here, and the type is the caller's promise.
                Ok(unsafe { std::mem::transmute_copy::<*const c_void, F>(&address) })
            }
        }
    }

    /// What it calls itself.
    pub(crate) fn version(&self) -> Option<String> {
        self.tells(0)
    }

    /// How it was compiled (`OPENSSL_CFLAGS`; 1.0.2 has another number for it).
    pub(crate) fn compiler(&self) -> Option<String> {
        self.tells(1)
    }

    /// Which features of the CPU it has found (`OPENSSL_CPU_INFO`, since 3.0), `N/A` where nothing in it asks for them.
    pub(crate) fn cpu(&self) -> Option<String> {
        self.tells(9)?.strip_prefix("CPUINFO: ").map(str::to_owned)
    }

    fn tells(&self, what: c_int) -> Option<String> {
        let text = |function: &str, what: c_int| {
            // SAFETY: OpenSSL_version and SSLeay_version are both `const char *(int)`.
            let tell = unsafe { self.function::<unsafe extern "C" fn(c_int) -> *const c_char>(function) }.ok()?;
            // SAFETY: they take any number, and return a static text or null.
            let text = unsafe { tell(what) };
            // SAFETY: not null, and ended by a zero.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
        };
        text("OpenSSL_version", what).or_else(|| text("SSLeay_version", what))
    }

    /// What its error queue says first, behind the name of the function that failed.
    pub(crate) fn failed(&self, function: &str) -> String {
        type Text = unsafe extern "C" fn(c_ulong, *mut c_char, usize);
        // SAFETY: types as in openssl/err.h of every version. AWS-LC has `uint32_t` for codes, which a register of
        // `unsigned long` holds as well on all systems that it is built for.
        let (code, text) = unsafe {
            (
                self.function::<unsafe extern "C" fn() -> c_ulong>("ERR_get_error"),
                self.function::<Text>("ERR_error_string_n"),
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
    pub(crate) fn made(&self, name: &str) -> Result<Opaque, String> {
        // SAFETY: used for EVP_aes_* and its like and EVP_*_CTX_new: all `T *(void)`.
        let make = unsafe { self.function::<unsafe extern "C" fn() -> Opaque>(name) }?;
        // SAFETY: no parameters, no conditions.
        let object = unsafe { make() };
        if object.is_null() { Err(self.failed(name)) } else { Ok(object) }
    }
}

fn address_in_aws_lc(name: &str) -> Option<*const c_void> {
    built_in!(name;
        OpenSSL_version, ERR_get_error, ERR_error_string_n, RAND_bytes,
        EVP_CIPHER_CTX_new, EVP_CipherInit_ex, EVP_EncryptUpdate, EVP_DecryptUpdate, EVP_CipherFinal_ex, EVP_CIPHER_CTX_ctrl,
        EVP_CIPHER_CTX_set_padding,
        EVP_aes_128_cbc, EVP_aes_192_cbc, EVP_aes_256_cbc, EVP_aes_128_ctr, EVP_aes_192_ctr, EVP_aes_256_ctr,
        EVP_aes_128_gcm, EVP_aes_192_gcm, EVP_aes_256_gcm, EVP_aes_256_xts, EVP_chacha20_poly1305,
        EVP_MD_CTX_new, EVP_DigestInit_ex, EVP_DigestUpdate, EVP_DigestFinal_ex,
        EVP_md5, EVP_sha1, EVP_sha224, EVP_sha256, EVP_sha384, EVP_sha512, EVP_sha3_256, EVP_sha3_512,
        d2i_AutoPrivateKey, EVP_PKEY_CTX_new, EVP_PKEY_sign_init, EVP_PKEY_sign, EVP_PKEY_verify_init, EVP_PKEY_verify,
        EVP_PKEY_derive_init, EVP_PKEY_derive_set_peer, EVP_PKEY_derive, EVP_PKEY_new_raw_public_key,
        EVP_DigestSignInit, EVP_DigestSign, EVP_DigestVerifyInit, EVP_DigestVerify,
    )
}
