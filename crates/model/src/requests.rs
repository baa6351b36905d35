//! What ops ask for, where that is more than one fixed request.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where requests come from and what differs among them. The default: all ops send the one request of the
/// [`crate::HttpPlan`]. Secrets are no part of it; files are read when the run starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestsPlan {
    /// File that lists requests; `None`: there is the one of the plan.
    pub source: Option<RequestSource>,
    /// In which order they are sent.
    pub order: RequestOrder,
    /// Seed of what is chosen at random: requests, numbers, UUIDs.
    pub seed: u64,
    /// Variables such as `{n}` are replaced in addresses, header values and bodies.
    pub is_template: bool,
    /// CSV file whose columns are variables; its first line names them.
    pub data_file: Option<PathBuf>,
    /// Each connection keeps the cookies that it was given, and sends them.
    pub cookies: bool,
    /// Who asks.
    pub auth: Option<AuthPlan>,
    /// The body is this form.
    pub form: Option<FormPlan>,
    /// Bodies of responses are decompressed and counted in both sizes; one that cannot be is a failure.
    pub decompress: bool,
}

impl RequestsPlan {
    /// Whether it asks for nothing.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The options that mean it, with their values; `None` where a path is no text.
    pub(crate) fn options(&self) -> Option<Vec<(&'static str, Option<String>)>> {
        let path = |path: &PathBuf| path.to_str().map(str::to_owned);
        let mut options = Vec::new();
        if let Some(RequestSource { file, format }) = &self.source {
            match format {
                RequestFormat::Urls => options.push(("--urls", Some(path(file)?))),
                RequestFormat::Har => options.push(("--har", Some(path(file)?))),
                RequestFormat::Vegeta | RequestFormat::Http => {
                    options.push(("--request-file", Some(path(file)?)));
                    options.push(("--request-format", Some(format.name().to_owned())));
                }
            }
        }
        match &self.data_file {
            Some(file) => options.push(("--data", Some(path(file)?))),
            None if self.is_template => options.push(("--template", None)),
            None => {}
        }
        match &self.auth {
            Some(AuthPlan::Basic { user, password }) => {
                options.push(("--user", Some(user.clone())));
                if let SecretSource::File(file) = password {
                    options.push(("--password-file", Some(path(file)?)));
                }
            }
            Some(AuthPlan::Bearer { token: SecretSource::File(file) }) => {
                options.push(("--bearer-file", Some(path(file)?)));
            }
            Some(AuthPlan::Bearer { token: SecretSource::Environment(_) }) => return None,
            Some(AuthPlan::AwsSigV4 { region, service }) => {
                options.push(("--aws-sigv4", Some(format!("{region}:{service}"))));
            }
            None => {}
        }
        for FormField { name, value } in self.form.iter().flat_map(|form| &form.fields) {
            let option = if self.form.as_ref().is_some_and(|form| form.is_multipart) { "--form" } else { "--field" };
            let value = match value {
                FormValue::Text(text) => text.clone(),
                FormValue::Content(file) => format!("<{}", path(file)?),
                FormValue::Upload(file) => format!("@{}", path(file)?),
            };
            options.push((option, Some(format!("{name}={value}"))));
        }
        Some(options)
    }

    /// Whether requests may change something whatever the plan's method is: a form is posted, and files of requests name
    /// methods of their own.
    pub fn may_write(&self) -> bool {
        self.form.is_some() || self.source.as_ref().is_some_and(|source| source.format != RequestFormat::Urls)
    }

    /// Whether ops differ in what they ask for, so that no single response stands for all.
    pub fn differ(&self) -> bool {
        self.source.is_some() || self.is_template
    }
}

/// A file that lists requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSource {
    /// The file.
    pub file: PathBuf,
    /// How it is written.
    pub format: RequestFormat,
}

/// How a file of requests is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestFormat {
    /// An address or path on each line, after its weight where that is not 1.
    Urls,
    /// vegeta's: a JSON object on each line, or its text of methods, addresses and fields.
    Vegeta,
    /// That of editors: requests as they are sent, `###` between them.
    Http,
    /// A browser's recording (HTTP Archive 1.2).
    Har,
}

impl RequestFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Urls, Self::Vegeta, Self::Http, Self::Har];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Urls => "urls",
            Self::Vegeta => "vegeta",
            Self::Http => "http",
            Self::Har => "har",
        }
    }
}

/// In which order listed requests are sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// As they are listed, round and round; with weights, each as often as its weight within a round.
    #[default]
    InTurn,
    /// At random by weight.
    Random,
}

/// Who asks. Secrets themselves are not part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthPlan {
    /// A user with a password (RFC 7617).
    Basic {
        /// The user.
        user: String,
        /// Where the password is.
        password: SecretSource,
    },
    /// Whoever has the token (RFC 6750).
    Bearer {
        /// Where the token is.
        token: SecretSource,
    },
    /// Requests signed for AWS, version 4, with the keys of the environment (`AWS_ACCESS_KEY_ID` and so on).
    #[serde(rename = "aws-sigv4")]
    AwsSigV4 {
        /// Region, such as `eu-central-1`.
        region: String,
        /// Service, such as `s3`.
        service: String,
    },
}

/// Where a secret is read from when the run starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// The first line of this file.
    File(PathBuf),
    /// This variable of the environment.
    Environment(String),
}

/// A form that is sent as a request's body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormPlan {
    /// As `multipart/form-data` (RFC 7578); otherwise as `application/x-www-form-urlencoded`.
    pub is_multipart: bool,
    /// Its fields in the order given.
    pub fields: Vec<FormField>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: FormValue,
}

/// The value of a form's field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FormValue {
    /// This text.
    Text(String),
    /// The content of this file.
    Content(PathBuf),
    /// This file, uploaded with its name; in multipart forms only.
    Upload(PathBuf),
}
