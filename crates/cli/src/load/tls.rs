//! Options of TLS, and what they mean.

use crate::load::LoadFlags;
use crate::outcome::Usage;
use clap::Args;
use duel_model::{Target, TlsPlan, TlsVersion, sanitize_line};
use std::path::PathBuf;

/// Default of `--tls`.
const VERSIONS: &str = "1.2+1.3";
/// Default of `--alpn`.
pub(crate) const ALPN: &str = "http/1.1";

/// How TLS is spoken, the same for every target.
#[derive(Args, Clone)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsFlags {
    /// Do not verify certificates
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// PEM file of certificate authorities instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file of the client's certificate chain
    #[arg(long, value_name = "FILE")]
    pub(crate) client_cert: Option<PathBuf>,
    /// PEM file of the client's key
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key: Option<PathBuf>,
    /// Versions allowed; a list makes a factor: 1.2,1.3
    #[arg(long = "tls", value_name = "LIST", default_value = VERSIONS)]
    pub(crate) versions: String,
    /// Cipher suites allowed, by IANA name, in order of preference [default: all of the library's]
    #[arg(long, value_name = "LIST")]
    pub(crate) ciphers: Option<String>,
    /// The one cipher suite allowed; a list makes a factor
    #[arg(long, value_name = "LIST", conflicts_with = "ciphers")]
    pub(crate) cipher: Option<String>,
    /// Key exchange groups in order of preference [default: x25519,secp256r1,secp384r1]
    #[arg(long, value_name = "LIST")]
    pub(crate) groups: Option<String>,
    /// Resume sessions on new connections
    #[arg(long)]
    pub(crate) resumption: bool,
    /// Protocols offered by ALPN; empty offers none
    #[arg(long, value_name = "LIST", default_value = ALPN)]
    pub(crate) alpn: String,
    /// Name for SNI and verification, where it differs from the address
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

impl TlsFlags {
    /// What the options mean.
    pub(crate) fn plan(&self) -> Result<TlsPlan, Usage> {
        let version = |typed: &str| {
            TlsVersion::of_name(typed).ok_or_else(|| {
                Usage(format!("--tls: '{}' is no version that can be used; 1.2 and 1.3 can", sanitize_line(typed)))
            })
        };
        let versions = first_level(&self.versions).map(version).collect::<Result<Vec<_>, _>>()?;
        if versions.is_empty() {
            return Err(Usage("--tls: at least one version is needed, 1.2 or 1.3".into()));
        }
        let plan = TlsPlan {
            verify: !self.insecure,
            ca_file: self.ca.clone(),
            client_cert_file: self.client_cert.clone(),
            client_key_file: self.client_key.clone(),
            versions,
            ciphers: match &self.cipher {
                Some(levels) => first_level(levels).map(str::to_owned).collect(),
                None => self.ciphers.as_deref().map(list).unwrap_or_default(),
            },
            groups: self.groups.as_deref().map_or_else(|| TlsPlan::default().groups, list),
            resumption: self.resumption,
            alpn: list(&self.alpn),
            server_name: self.server_name.clone(),
        };
        duel_http::check_tls_names(&plan).map_err(|error| Usage(error.to_string()))?;
        Ok(plan)
    }
}

/// Refuses parameters of TLS where no target can speak it: what was asked for would not be measured. Whom to trust (`-k`,
/// `--ca`) is no parameter of the measurement, and a redirect may lead to https.
pub(crate) fn refuse_unspoken(targets: &[Target], load: &LoadFlags) -> Result<(), Usage> {
    let is_https =
        |target: &Target| target.address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if load.request.follow > 0 || load.requests.follow_each.is_some() || targets.iter().any(is_https) {
        return Ok(());
    }
    let flags = &load.tls;
    let given = [
        ("--ciphers", flags.ciphers.is_some()),
        ("--cipher", flags.cipher.is_some()),
        ("--groups", flags.groups.is_some()),
        ("--tls", flags.versions != VERSIONS),
        ("--alpn", flags.alpn != ALPN),
        ("--resumption", flags.resumption),
        ("--server-name", flags.server_name.is_some()),
        ("--client-cert", flags.client_cert.is_some()),
        ("--client-key", flags.client_key.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Usage(format!("{option} has no meaning here: no target's address begins with https://")))
        }
    }
}

/// What the first of a factor's levels, or the one value, allows together. A plan has to have some: each level replaces it.
fn first_level(typed: &str) -> impl Iterator<Item = &str> {
    let first = typed.split_once(',').map_or(typed, |(first, _)| first);
    first.split('+').map(str::trim).filter(|item| !item.is_empty())
}

fn list(typed: &str) -> Vec<String> {
    typed.split([',', ':']).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
