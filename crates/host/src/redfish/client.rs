//! One request, one bounded answer.

use super::{Password, RedfishTrust};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duel_model::sanitize_line;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use ureq::http::HeaderValue;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Error};

/// Longest answer: a chassis with hundreds of sensors has a tenth of it. How deep an answer may be nested is bounded by
/// serde_json (128).
const LONGEST_ANSWER_BYTES: u64 = 1 << 20;

/// A connection to a controller, and who asks.
pub(super) struct Client {
    agent: Agent,
    address: String,
    authorization: Option<HeaderValue>,
    request_timeout: Duration,
}

impl Client {
    pub(super) fn new(
        address: &str,
        credentials: Option<&(String, Password)>,
        trust: &RedfishTrust,
        request_timeout: Duration,
    ) -> Result<Self, String> {
        let authorities = match trust {
            RedfishTrust::System => {
                let found = rustls_native_certs::load_native_certs().certs;
                if found.is_empty() {
                    return Err("this system has no certificate authorities to verify it with".to_owned());
                }
                found.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned()).collect()
            }
            RedfishTrust::Authorities(given) => given.iter().map(|der| Certificate::from_der(der).to_owned()).collect(),
            RedfishTrust::All => Vec::new(),
        };
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            // The one that the load generator has: two would make rustls ask which.
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .root_certs(RootCerts::Specific(Arc::new(authorities)))
            .disable_verification(matches!(trust, RedfishTrust::All))
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .https_only(true)
            // Elsewhere the password is nobody's business.
            .max_redirects(0)
            .proxy(None)
            .http_status_as_error(false)
            .user_agent("duel")
            .build()
            .into();
        let authorization = credentials.map(|(user, Password(password))| {
            let basic = STANDARD.encode(format!("{user}:{password}"));
            HeaderValue::from_str(&format!("Basic {basic}")).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let authorization = authorization.transpose().map_err(|_| "the password cannot be sent".to_owned())?;
        Ok(Self { agent, address: address.to_owned(), authorization, request_timeout })
    }

    /// The JSON object at a path.
    pub(super) fn get(&self, path: &str, patience: Duration) -> Result<Value, String> {
        let timeout = self.request_timeout.min(patience).max(Duration::from_millis(1));
        let mut request = self.agent.get(format!("{}{path}", self.address)).header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization.clone());
        }
        let told = |error: &Error| told(error, timeout, self.authorization.is_some());
        let request = request.config().timeout_global(Some(timeout)).build();
        let mut answer = request.call().map_err(|error| told(&error))?;
        match answer.status().as_u16() {
            200 => {}
            401 if self.authorization.is_none() => return Err("it asks for a user and a password (401)".to_owned()),
            401 => return Err("it does not accept the user or the password (401)".to_owned()),
            403 => return Err(format!("the user may not read {} (403)", sanitize_line(path))),
            status => return Err(format!("it answers {status} to {}", sanitize_line(path))),
        }
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER_BYTES).read_to_vec();
        let body = body.map_err(|error| told(&error))?;
        match serde_json::from_slice(&body) {
            Ok(Value::Object(object)) => Ok(Value::Object(object)),
            _ => Err(format!("what it tells at {} is no Redfish resource", sanitize_line(path))),
        }
    }
}

fn told(error: &Error, timeout: Duration, is_secret: bool) -> String {
    match error {
        Error::Timeout(_) => format!("it did not answer within {:.1} s", timeout.as_secs_f64()),
        Error::BodyExceedsLimit(_) => "its answer is longer than a Redfish resource can be".to_owned(),
        Error::HostNotFound => "there is no host of this name".to_owned(),
        Error::Rustls(error) => tls(error),
        Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(error) => tls(error),
            // The number of a system's error says nothing to whom it is told.
            None => sanitize_line(error.to_string().split(" (os error").next().unwrap_or_default()),
        },
        Error::Protocol(_) | Error::LargeResponseHeader(..) => {
            "what it answers is not HTTP as it ought to be".to_owned()
        }
        // Of a request with a password not even its own error text is passed on.
        Error::BadUri(_) | Error::Http(_) if is_secret => "the request could not be made".to_owned(),
        error => sanitize_line(&error.to_string()),
    }
}

fn tls(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(_) => format!(
            "its certificate cannot be verified ({}); --redfish-insecure asks it all the same",
            sanitize_line(&error.to_string())
        ),
        error => sanitize_line(&format!("TLS: {error}")),
    }
}
