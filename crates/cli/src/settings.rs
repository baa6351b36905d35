//! The options of kinds of work that declare their settings: one for each setting, whichever kind it belongs to.

use crate::connection::ConnectionFlags;
use crate::outcome::Usage;
use crate::request::RequestFlags;
use crate::requests::RequestsFlags;
use crate::tls::TlsFlags;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use duel_model::{Factor, KindPlan, Param, Schema, SettingLevels};

/// What was typed for declared settings, as it was typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    typed: Vec<(&'static Param, String)>,
}

/// The first option that was typed of those that only web servers have. It adds no option, and stands in front of those:
/// clap takes away what it has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebOnly {
    typed: Option<String>,
}

/// Options of the load that mean something only where there are connections.
const OF_CONNECTIONS: [&str; 2] = ["busy-poll", "connect-timeout"];

/// The options that only web servers have, by their long names.
fn of_web() -> Vec<Arg> {
    let bare = Command::new("");
    let command = TlsFlags::augment_args(ConnectionFlags::augment_args(RequestsFlags::augment_args(
        RequestFlags::augment_args(bare),
    )));
    command.get_arguments().cloned().collect()
}

/// Every declared setting once, though several kinds may have one of its name, with the first kind that has it.
fn params() -> Vec<(&'static Schema, &'static Param)> {
    let mut params: Vec<(&'static Schema, &'static Param)> = Vec::new();
    for (schema, param) in
        duel_lab::kinds::SCHEMAS.iter().flat_map(|schema| schema.params.iter().map(|param| (*schema, param)))
    {
        if params.iter().all(|(_, known)| known.name != param.name) {
            params.push((schema, param));
        }
    }
    params
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        params().into_iter().fold(command, |command, (schema, param)| {
            command.arg(
                Arg::new(param.name)
                    .long(param.name)
                    .value_name(param.value_name)
                    .help(format!("{} [default: {}]", param.help, param.default))
                    .help_heading(schema.targets),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = |(_, param): (_, &'static Param)| Some((param, matches.get_one::<String>(param.name)?.clone()));
        Ok(Self { typed: params().into_iter().filter_map(typed).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for WebOnly {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for WebOnly {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let is_typed = |id: &str| {
            matches.ids().any(|known| known == id) && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        let of_web = of_web().into_iter().find(|arg| is_typed(arg.get_id().as_str()));
        let of_web = of_web.and_then(|arg| arg.get_long().map(str::to_owned));
        let of_connections = OF_CONNECTIONS.into_iter().find(|name| is_typed(&name.replace('-', "_")));
        Ok(Self { typed: of_web.or_else(|| of_connections.map(str::to_owned)) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl WebOnly {
    /// Refuses what means nothing to targets of this kind.
    pub(crate) fn refuse(&self, schema: &Schema) -> Result<(), Usage> {
        self.typed.as_ref().map_or(Ok(()), |name| Err(meaningless(name, schema)))
    }
}

impl SettingFlags {
    /// Types a setting for whoever has not.
    pub(crate) fn offer(&mut self, param: &'static Param, value: &str) {
        if self.typed.iter().all(|(known, _)| *known != param) {
            self.typed.push((param, value.to_owned()));
        }
    }

    /// Sets what was typed, of a list its first level. Factors come from [`SettingFlags::factors`].
    pub(crate) fn set(&self, plan: &mut KindPlan) -> Result<(), Usage> {
        for (param, typed) in &self.typed {
            if !plan.schema.params.contains(param) {
                return Err(meaningless(param.name, plan.schema));
            }
            let levels = levels(param, typed)?;
            plan.settings.insert(param.id(), levels.into_iter().next().unwrap_or_default());
        }
        Ok(())
    }

    /// Refuses settings of a kind that the targets are not of.
    pub(crate) fn refuse(&self) -> Result<(), Usage> {
        let Some((typed, _)) = self.typed.first() else { return Ok(()) };
        let owners: Vec<String> = params()
            .into_iter()
            .filter(|(_, param)| param.name == typed.name)
            .map(|(schema, _)| lower(schema))
            .collect();
        Err(Usage(format!("--{} is for {}; these targets are none", typed.name, owners.join(" and "))))
    }

    /// The lists among what was typed.
    pub(crate) fn factors(&self) -> Result<Vec<Factor>, Usage> {
        let mut factors = Vec::new();
        for &(param, ref typed) in &self.typed {
            let levels = levels(param, typed)?;
            if levels.len() > 1 {
                factors.push(Factor::Setting(SettingLevels { param, levels }));
            }
        }
        Ok(factors)
    }
}

fn levels(param: &Param, typed: &str) -> Result<Vec<String>, Usage> {
    if param.takes_lists() { param.levels(typed).map_err(Usage) } else { Ok(vec![param.read(typed).map_err(Usage)?]) }
}

fn meaningless(name: &str, schema: &Schema) -> Usage {
    Usage(format!("--{name} means nothing to {}; leave it out", lower(schema)))
}

/// What the targets of a kind are called in the middle of a sentence.
fn lower(schema: &Schema) -> String {
    schema.targets.to_lowercase()
}
