//! Who asks: secrets are read from files or the environment when a run starts, and stay in memory.

use super::sigv4::{Keys, Scope};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duel_load::WorkloadError;
use duel_model::{AuthPlan, SecretSource, sanitize_line};
use std::io::Read;

/// What a plan's credentials come to.
pub(crate) enum Credentials {
    /// The value of `Authorization`.
    Field(String),
    /// Each request is signed by itself.
    Signature(Keys, Scope),
}

impl Credentials {
    /// Reads the secrets.
    pub(crate) fn read(plan: &AuthPlan) -> Result<Self, WorkloadError> {
        Ok(match plan {
            AuthPlan::Basic { user, password } => {
                if user.contains(':') {
                    return Err(WorkloadError("the name of a user has no colon (RFC 7617)".into()));
                }
                let pair = format!("{user}:{}", secret(password, "the password")?);
                Self::Field(format!("Basic {}", STANDARD.encode(pair)))
            }
            AuthPlan::Bearer { token } => Self::Field(format!("Bearer {}", secret(token, "the token")?)),
            AuthPlan::AwsSigV4 { region, service } => {
                let variable = |name: &str| {
                    std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
                        WorkloadError(format!("to sign requests for AWS, ${name} is needed in the environment"))
                    })
                };
                let keys = Keys {
                    id: variable("AWS_ACCESS_KEY_ID")?,
                    secret: variable("AWS_SECRET_ACCESS_KEY")?,
                    session_token: variable("AWS_SESSION_TOKEN").ok(),
                };
                Self::Signature(keys, Scope { region: region.clone(), service: service.clone() })
            }
        })
    }
}

/// Longest file that a secret is read from.
const LONGEST_SECRET_BYTES: u64 = 64 << 10;

fn secret(source: &SecretSource, what: &str) -> Result<String, WorkloadError> {
    let (found, place) = match source {
        SecretSource::File(path) => {
            let shown = sanitize_line(&path.to_string_lossy());
            // The first line is all that is wanted, and a file may have no end.
            let mut text = String::new();
            std::fs::File::open(path)
                .and_then(|file| file.take(LONGEST_SECRET_BYTES).read_to_string(&mut text))
                .map_err(|error| WorkloadError(format!("cannot read {what} from {shown}: {error}")))?;
            if text.len() as u64 == LONGEST_SECRET_BYTES {
                return Err(WorkloadError(format!("{what} is expected in {shown}, which is longer than a secret is")));
            }
            (text.lines().next().unwrap_or_default().to_owned(), format!("the first line of {shown}"))
        }
        SecretSource::Environment(name) => (std::env::var(name).unwrap_or_default(), format!("${name}")),
    };
    if found.is_empty() {
        return Err(WorkloadError(format!("{what} is expected in {place}, which is empty or not there")));
    }
    if found.chars().any(char::is_control) {
        return Err(WorkloadError(format!("{what} in {place} has a control character in it")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_7617() {
        let file = std::env::temp_dir().join(format!("duel-auth-{}", std::process::id()));
        std::fs::write(&file, "open sesame\nsecond line\n").unwrap();
        let password = SecretSource::File(file.clone());
        let plan = AuthPlan::Basic { user: "Aladdin".into(), password };
        let Ok(Credentials::Field(value)) = Credentials::read(&plan) else { panic!("no field") };
        std::fs::remove_file(file).unwrap();
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn what_is_not_there_is_told() {
        let token = SecretSource::Environment("DUEL_NO_SUCH_VARIABLE".into());
        let Err(error) = Credentials::read(&AuthPlan::Bearer { token }) else { panic!("found") };
        assert!(error.0.contains("$DUEL_NO_SUCH_VARIABLE"), "{error}");
        let token = SecretSource::File("/dev/zero".into());
        let Err(error) = Credentials::read(&AuthPlan::Bearer { token }) else { panic!("found") };
        assert!(error.0.contains("/dev/zero, which is longer than a secret is"), "{error}");
    }
}
