//! Options of TLS, and what they mean.

use crate::load::LoadFlags;
use crate::outcome::Usage;
use clap::Args;
use duel_model::web::settings::{CIPHER, INSECURE};
use duel_model::{HttpPlan, Param, Target, web};
use std::path::PathBuf;

/// Default of `--alpn`.
pub(crate) const ALPN: &str = "http/1.1";

/// How TLS is spoken, the same for every target.
#[derive(Args, Clone)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsFlags {
    /// PEM file of certificate authorities instead of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file of the client's certificate chain
    #[arg(long, value_name = "FILE")]
    pub(crate) client_cert: Option<PathBuf>,
    /// PEM file of the client's key
    #[arg(long, value_name = "FILE")]
    pub(crate) client_key: Option<PathBuf>,
    /// The one cipher suite allowed; a list makes a factor
    #[arg(id = "only_cipher", long = "cipher", value_name = "LIST", conflicts_with = CIPHER.name)]
    pub(crate) cipher: Option<String>,
    /// Protocols offered by ALPN; empty offers none
    #[arg(long, value_name = "LIST", default_value = ALPN)]
    pub(crate) alpn: String,
    /// Name for SNI and verification, where it differs from the address
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
}

impl TlsFlags {
    /// Puts what was asked for into the plan, in which declared settings are already.
    pub(crate) fn put_into(&self, plan: &mut HttpPlan) -> Result<(), Usage> {
        if let Some(levels) = &self.cipher {
            // The factor has the others.
            let first = levels.split(',').next().unwrap_or_default();
            plan.set(&CIPHER, &CIPHER.read(first).map_err(Usage)?);
        }
        plan.tls.ca_file.clone_from(&self.ca);
        plan.tls.client_cert_file.clone_from(&self.client_cert);
        plan.tls.client_key_file.clone_from(&self.client_key);
        plan.tls.alpn = list(&self.alpn);
        plan.tls.server_name.clone_from(&self.server_name);
        duel_http::check_tls_names(&plan.tls).map_err(|error| Usage(error.to_string()))
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
        ("--cipher", flags.cipher.is_some()),
        ("--alpn", flags.alpn != ALPN),
        ("--server-name", flags.server_name.is_some()),
        ("--client-cert", flags.client_cert.is_some()),
        ("--client-key", flags.client_key.is_some()),
    ];
    let given = given.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| (*option).to_owned());
    let of_tls = web::SCHEMA.params.iter().filter(|param| web::SCHEMA.heading(param) == "TLS" && **param != INSECURE);
    let is_given = |param: &&Param| load.settings.typed(param.name).is_some_and(|typed| typed != param.default);
    let declared = of_tls.filter(is_given).map(|param| web::SCHEMA.option(param));
    match given.chain(declared).next() {
        None => Ok(()),
        Some(option) => Err(Usage(format!("{option} has no meaning here: no target's address begins with https://"))),
    }
}

fn list(typed: &str) -> Vec<String> {
    typed.split([',', ':']).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
