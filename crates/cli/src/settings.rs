//! The options of kinds of work that declare their settings: one for each setting, whichever kind it belongs to.

use crate::connection::ConnectionFlags;
use crate::outcome::Usage;
use crate::request::RequestFlags;
use crate::requests::RequestsFlags;
use crate::tls::TlsFlags;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use duel_model::{Factor, KindPlan, Param, Schema, SettingLevels, kinds};

/// What was typed for declared settings, as it was typed.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    typed: Vec<(&'static str, String)>,
}

/// The options that were typed of those that only web servers have. It adds no option, and stands in front of those:
/// clap takes away what it has read.
#[derive(Debug, Clone, Default)]
pub(crate) struct WebOnly {
    typed: Vec<String>,
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

/// The settings of one name, each with the kind of work that has it.
type Shared = Vec<(&'static Schema, &'static Param)>;

/// Every declared setting, by its name: an option each.
fn params() -> Vec<Shared> {
    let mut params: Vec<Shared> = Vec::new();
    for of in duel_lab::kinds::SCHEMAS.iter().flat_map(|schema| schema.params.iter().map(|param| (*schema, param))) {
        match params.iter_mut().find(|shared| shared[0].1.name == of.1.name) {
            Some(shared) => shared.push(of),
            None => params.push(vec![of]),
        }
    }
    params
}

/// The option of the settings of one name. What several kinds have stands under a heading of its own, with what it means for
/// each.
fn option(shared: &Shared) -> Arg {
    let default = |param: &Param| if param.default.is_empty() { "none" } else { param.default };
    let help = |param: &Param| format!("{} [default: {}]", param.help, default(param));
    let (schema, first) = shared[0];
    let option = Arg::new(first.name).long(first.name).value_name(first.value_name);
    let option = match shared.as_slice() {
        [_] => option.help(help(first)).help_heading(schema.targets),
        all => {
            let each: Vec<String> = all.iter().map(|(of, param)| format!("{}: {}", of.targets, help(param))).collect();
            option.help(each.join(".\n")).help_heading("Settings of several kinds of targets")
        }
    };
    let is_switch = shared.iter().all(|(_, param)| param.is_switch());
    if is_switch { option.num_args(0..=1).require_equals(true).default_missing_value("on") } else { option }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        params().iter().fold(command, |command, shared| command.arg(option(shared)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let names = params().into_iter().map(|shared| shared[0].1.name);
        let typed = |name: &'static str| Some((name, matches.get_one::<String>(name)?.clone()));
        Ok(Self { typed: names.filter_map(typed).collect() })
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
        let of_web = of_web().into_iter().filter(|arg| is_typed(arg.get_id().as_str()));
        let of_web = of_web.filter_map(|arg| arg.get_long().map(str::to_owned));
        let of_connections = OF_CONNECTIONS.into_iter().filter(|name| is_typed(&name.replace('-', "_")));
        Ok(Self { typed: of_web.chain(of_connections.map(str::to_owned)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl WebOnly {
    /// Refuses what means nothing to targets of this kind.
    pub(crate) fn refuse(&self, schema: &Schema) -> Result<(), Usage> {
        // What lanes are called is an option that says how many there are: see [`LoadFlags::lanes`].
        let has_meaning =
            |name: &str| name == schema.lane.many || (!schema.lanes_are_threads() && OF_CONNECTIONS.contains(&name));
        self.typed.iter().find(|name| !has_meaning(name)).map_or(Ok(()), |name| Err(meaningless(name, schema)))
    }
}

impl SettingFlags {
    /// Types a setting for whoever has not.
    pub(crate) fn offer(&mut self, param: &'static Param, value: &str) {
        if self.typed.iter().all(|(known, _)| *known != param.name) {
            self.typed.push((param.name, value.to_owned()));
        }
    }

    /// Sets what was typed, of a list its first level. Factors come from [`SettingFlags::factors`].
    pub(crate) fn set(&self, plan: &mut KindPlan) -> Result<(), Usage> {
        for (name, typed) in &self.typed {
            let param = plan.schema.param(name).ok_or_else(|| meaningless(name, plan.schema))?;
            let levels = levels(param, typed)?;
            plan.settings.insert(param.id(), levels.into_iter().next().unwrap_or_default());
        }
        Ok(())
    }

    /// Refuses settings of a kind that the targets are not of.
    pub(crate) fn refuse(&self) -> Result<(), Usage> {
        let Some((typed, _)) = self.typed.first() else { return Ok(()) };
        let owners: Vec<String> = kinds::params(typed).map(|(schema, _)| lower(schema)).collect();
        Err(Usage(format!("--{typed} is for {}; these targets are none", owners.join(" and "))))
    }

    /// The lists among what was typed for targets of this kind.
    pub(crate) fn factors(&self, schema: &'static Schema) -> Result<Vec<Factor>, Usage> {
        let mut factors = Vec::new();
        for (name, typed) in &self.typed {
            let Some(param) = schema.param(name) else { continue };
            let levels = levels(param, typed)?;
            if levels.len() > 1 {
                factors.push(Factor::Setting(SettingLevels { schema, param, levels }));
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
