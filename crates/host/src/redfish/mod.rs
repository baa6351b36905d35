//! Fans, temperatures and power supplies as the machine's management controller tells them, over Redfish (DMTF DSP0266).
//!
//! A controller is a small computer that answers in tenths of a second or in seconds, so it is asked before and after a
//! run and not during it. What it says is bounded, and only its own resources are followed: a link that leads elsewhere
//! would carry the password there.

#[cfg(feature = "redfish")]
mod client;
#[cfg(feature = "redfish")]
mod facts;
#[cfg(all(feature = "redfish", any(test, fuzzing)))]
pub(crate) mod fuzzing;
#[cfg(feature = "redfish")]
mod visit;

use crate::error::HostError;
use duel_model::{Facts, RedfishPlan, sanitize_line};
use std::fmt;
use std::io::Read;
use std::time::Duration;

/// Where the password is looked for if no file is named.
pub const REDFISH_PASSWORD_VARIABLE: &str = "DUEL_REDFISH_PASSWORD";

/// Longest password that is read from a file; longer ones are no passwords.
const LONGEST_PASSWORD_BYTES: u64 = 4096;

/// A management controller that can be asked.
#[derive(Debug, Clone)]
pub struct Redfish {
    address: String,
    credentials: Option<(String, Password)>,
    trust: RedfishTrust,
    /// How long one answer may take.
    pub request_timeout: Duration,
    /// How long all of them may take together.
    pub patience: Duration,
}

/// Which controllers are believed to be who they say.
#[derive(Debug, Clone)]
pub enum RedfishTrust {
    /// Those whom the system's certificate authorities vouch for.
    System,
    /// Those whom these authorities vouch for, in DER.
    Authorities(Vec<Vec<u8>>),
    /// All: whoever stands in between can read the password.
    All,
}

/// A password, which shows itself to nobody.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// The password itself.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password([not kept])")
    }
}

impl Redfish {
    /// A controller at `https://HOST[:PORT]`, asked as this user.
    ///
    /// # Errors
    ///
    /// If the address is no such address. Plain `http://` is none: it would tell everybody the password.
    pub fn new(address: &str, credentials: Option<(String, Password)>, trust: RedfishTrust) -> Result<Self, HostError> {
        let wrong = |why| Err(HostError::Redfish { address: shown(address), why: String::from(why) });
        let Some(authority) = address.strip_prefix("https://").map(|rest| rest.strip_suffix('/').unwrap_or(rest))
        else {
            return wrong("it does not begin with https://");
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
        if authority.is_empty() || authority.len() > 300 || !authority.chars().all(plain) {
            return wrong("it has to be https://HOST or https://HOST:PORT");
        }
        if credentials.as_ref().is_some_and(|(user, _)| user.contains(':') || user.chars().any(char::is_control)) {
            return wrong("a user's name cannot hold a colon");
        }
        Ok(Self {
            address: format!("https://{authority}"),
            credentials,
            trust,
            request_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(20),
        })
    }

    /// The controller of a plan, with the password from where the plan says that it is.
    ///
    /// # Errors
    ///
    /// If the password is not there, or the address is none.
    pub fn of_plan(plan: &RedfishPlan) -> Result<Self, HostError> {
        let wrong = |why: String| HostError::Redfish { address: shown(&plan.address), why };
        let credentials = match (&plan.user, &plan.password_file) {
            (None, _) => None,
            (Some(user), Some(path)) => {
                let file = sanitize_line(&path.to_string_lossy());
                let mut text = String::new();
                std::fs::File::open(path)
                    .and_then(|file| file.take(LONGEST_PASSWORD_BYTES).read_to_string(&mut text))
                    .map_err(|error| wrong(format!("its password cannot be read from {file}: {error}")))?;
                let password = text.lines().next().unwrap_or_default();
                if password.is_empty() {
                    return Err(wrong(format!("the first line of {file} should be its password, and is empty")));
                }
                Some((user.clone(), Password::new(password)))
            }
            (Some(user), None) => match std::env::var(REDFISH_PASSWORD_VARIABLE) {
                Ok(password) if !password.is_empty() => Some((user.clone(), Password::new(password))),
                _ => {
                    return Err(wrong(format!(
                        "there is no password for {}: set {REDFISH_PASSWORD_VARIABLE}, or name a file with \
                         --redfish-password-file",
                        sanitize_line(user)
                    )));
                }
            },
        };
        Self::new(&plan.address, credentials, if plan.verify { RedfishTrust::System } else { RedfishTrust::All })
    }

    /// Asks for everything, now. Keys begin with `redfish.`; the key `redfish` itself says why nothing, or not all, was
    /// told.
    #[cfg(feature = "redfish")]
    pub fn read(&self) -> Facts {
        visit::facts(self)
    }

    /// Says that this cannot be asked.
    #[cfg(not(feature = "redfish"))]
    pub fn read(&self) -> Facts {
        let why = "this duel was built without Redfish (cargo feature `redfish`)".to_owned();
        Facts([("redfish".to_owned(), duel_model::Known::Unavailable(why))].into())
    }
}

fn shown(address: &str) -> String {
    // A user who typed a password into the address has shown it to enough people.
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    match address.rsplit_once('@') {
        Some((_, host)) => sanitize_line(&format!("{scheme}://...@{host}")),
        None => sanitize_line(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_and_nothing_else() {
        let new = |address: &str| Redfish::new(address, None, RedfishTrust::System);
        for good in ["https://bmc", "https://bmc/", "https://10.0.0.1:8443", "https://[fe80::1%25eth0]"] {
            assert!(new(good).is_ok(), "{good}");
        }
        for bad in
            ["", "bmc", "http://bmc", "https://", "https://a b", "https://bmc/redfish", "https://u@bmc", "https://b\n"]
        {
            assert!(new(bad).is_err(), "{bad}");
        }
        let told = new("https://root:hunter2@bmc").unwrap_err().to_string();
        assert!(!told.contains("hunter2") && told.contains("...@bmc"), "{told}");
    }

    #[test]
    fn passwords_are_not_shown() {
        let redfish =
            Redfish::new("https://bmc", Some(("root".into(), Password::new("hunter2"))), RedfishTrust::System);
        assert!(!format!("{redfish:?}").contains("hunter2"));
    }

    #[test]
    fn passwords_come_from_a_file_and_their_absence_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let plan = |user: Option<&str>| RedfishPlan {
            address: "https://bmc".into(),
            user: user.map(str::to_owned),
            password_file: Some(file.clone()),
            verify: true,
        };
        assert!(Redfish::of_plan(&plan(None)).unwrap().credentials.is_none(), "nobody needs no password");
        let why = Redfish::of_plan(&plan(Some("root"))).unwrap_err().to_string();
        assert!(why.contains("password cannot be read from"), "{why}");
        std::fs::write(&file, "\nhunter2\n").unwrap();
        assert!(Redfish::of_plan(&plan(Some("root"))).unwrap_err().to_string().contains("is empty"));
        std::fs::write(&file, "hunter2\r\nsecond line\n").unwrap();
        let credentials = Redfish::of_plan(&plan(Some("root"))).unwrap().credentials;
        assert_eq!(credentials, Some(("root".to_owned(), Password::new("hunter2"))));
    }
}
