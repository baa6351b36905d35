//! The kinds of work that this process knows, and the settings of one.

use crate::{Id, Param, Schema};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The schemas that were registered.
static REGISTERED: OnceLock<&'static [&'static Schema]> = OnceLock::new();

/// Makes kinds of work known, so that a kept plan of theirs can be read. The first call counts.
///
/// Schemas stand with their kinds, in rooms that this one must not know. Rejected: a list of schemas in this room (each kind
/// would have two homes), and passing the list to whoever reads a plan (serde hands nothing down).
pub fn register(schemas: &'static [&'static Schema]) {
    let _ = REGISTERED.set(schemas);
}

/// All that are known: the built-in ones, and those that were registered.
pub fn known() -> impl Iterator<Item = &'static Schema> {
    let built_in: [&'static Schema; 2] = [&crate::null::SCHEMA, &crate::web::SCHEMA];
    built_in.into_iter().chain(REGISTERED.get().copied().unwrap_or_default().iter().copied())
}

/// The kinds that have a setting of this name, each with its own: one name may mean other values elsewhere.
pub fn params(name: &str) -> impl Iterator<Item = (&'static Schema, &'static Param)> {
    known().filter_map(move |schema| Some((schema, schema.param(name)?)))
}

/// A kind of work with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct KindPlan {
    /// What the kind declares of itself.
    pub schema: &'static Schema,
    /// Values of its settings, in the spelling that is kept; what is not there has its default.
    pub settings: BTreeMap<Id, String>,
}

impl KindPlan {
    /// The kind with all its defaults.
    pub const fn of(schema: &'static Schema) -> Self {
        Self { schema, settings: BTreeMap::new() }
    }

    /// The value of a setting.
    pub fn get(&self, param: &Param) -> &str {
        self.settings.get(&param.id()).map_or(param.default, String::as_str)
    }

    /// Whether another setting stands for this one.
    pub fn is_replaced(&self, param: &Param) -> bool {
        let replaces = self.schema.replaces.filter(|replaces| !self.get(replaces.by).is_empty());
        replaces.is_some_and(|replaces| replaces.params.iter().any(|replaced| replaced.name == param.name))
    }

    /// As it is kept.
    pub(crate) fn kept(&self) -> Kept {
        Kept { name: self.schema.kind.to_owned(), settings: self.settings.clone() }
    }
}

/// A kind of work as it is kept.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    name: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<Id, String>,
}

impl TryFrom<Kept> for KindPlan {
    type Error = String;

    /// A file may come from somebody else: values that no option could have set are refused.
    fn try_from(Kept { name, settings }: Kept) -> Result<Self, String> {
        let Some(schema) = known().find(|schema| schema.kind == name) else {
            return Err(format!("work of the kind '{}', which this duel does not know", crate::sanitize_line(&name)));
        };
        settings.iter().try_for_each(|(id, value)| schema.checked(*id, value).map(drop))?;
        Ok(Self { schema, settings })
    }
}
