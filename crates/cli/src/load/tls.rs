//! Options of TLS, and what they mean.

use crate::load::LoadFlags;
use crate::outcome::Usage;
use clap::Args;
use duel_model::web::settings::{CA, CIPHER, INSECURE};
use duel_model::{HttpPlan, Param, Target, web};

/// How TLS is spoken, the same for every target.
#[derive(Args, Clone)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsFlags {
    /// The one cipher suite allowed; a list makes a factor
    #[arg(id = "only_cipher", long = "cipher", value_name = "LIST", conflicts_with = CIPHER.name)]
    pub(crate) cipher: Option<String>,
}

impl TlsFlags {
    /// Puts what was asked for into the plan, in which declared settings are already.
    pub(crate) fn put_into(&self, plan: &mut HttpPlan) -> Result<(), Usage> {
        if let Some(levels) = &self.cipher {
            // The factor has the others.
            let first = levels.split(',').next().unwrap_or_default();
            plan.set(&CIPHER, &CIPHER.read(first).map_err(Usage)?);
        }
        duel_http::check_tls(plan).map_err(|error| Usage(error.to_string()))
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
    let of_tls = web::SCHEMA.params.iter().filter(|param| web::SCHEMA.heading(param) == "TLS");
    let of_tls = of_tls.filter(|param| ![&INSECURE, &CA].contains(param));
    let is_given = |param: &&Param| load.settings.typed(param.name).is_some_and(|typed| typed != param.default);
    let declared = of_tls.filter(is_given).map(|param| web::SCHEMA.option(param));
    let cipher = load.tls.cipher.iter().map(|_| "--cipher".to_owned());
    match cipher.chain(declared).next() {
        None => Ok(()),
        Some(option) => Err(Usage(format!("{option} has no meaning here: no target's address begins with https://"))),
    }
}
