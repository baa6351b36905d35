//! The options of declared settings: one for each setting, whichever kind of work it belongs to.

use crate::load::connection::ConnectionFlags;
use crate::load::request::RequestFlags;
use crate::load::requests::RequestsFlags;
use crate::load::tls::TlsFlags;
use crate::outcome::Usage;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use duel_model::{Factor, Param, Schema, SettingLevels, WorkloadPlan, kinds, web};

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
    let schemas = [&web::SCHEMA].into_iter().chain(duel_lab::kinds::SCHEMAS.iter().copied());
    for of in schemas.flat_map(|schema| schema.params.iter().map(move |param| (schema, param))) {
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
    let default = |param: &Param| if param.default.is_empty() { "none".to_owned() } else { param.typed(param.default) };
    let help = |param: &Param| format!("{} [default: {}]", param.help, default(param));
    let (schema, first) = shared[0];
    let (word, letter) = schema.option_names(first);
    let option = Arg::new(first.name).long(word).short(letter).value_name(first.value_name);
    let option = schema.excludes(first).into_iter().fold(option, |option, other| option.conflicts_with(other.name));
    let option = match shared.as_slice() {
        [_] => option.help(help(first)).help_heading(schema.heading(first)),
        all => {
            let each: Vec<String> = all.iter().map(|(of, param)| format!("{}: {}", of.targets, help(param))).collect();
            option.help(each.join(".\n")).help_heading("Settings of several kinds of targets")
        }
    };
    let is_switch = shared.iter().all(|(_, param)| param.is_switch());
    if is_switch { option.num_args(0..=1).require_equals(true).default_missing_value("on") } else { option }
}

/// The option that switches a setting off, which no other kind has.
fn switch_off(shared: &Shared) -> Option<Arg> {
    let (schema, param) = shared[0];
    let off = schema.switched_off_by(param)?;
    let option = Arg::new(off.option).long(off.option).action(ArgAction::SetTrue).conflicts_with(param.name);
    Some(option.help(off.help).help_heading(schema.heading(param)))
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        params().iter().fold(command, |command, shared| command.args(switch_off(shared)).arg(option(shared)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let typed = |shared: Shared| {
            let (schema, param) = shared[0];
            let is_off = schema.switched_off_by(param).is_some_and(|off| matches.get_flag(off.option));
            let typed = is_off.then(|| "off".to_owned()).or_else(|| matches.get_one::<String>(param.name).cloned());
            Some((param.name, typed?))
        };
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
        let has_meaning = |name: &str| !schema.lanes_are_threads() && OF_CONNECTIONS.contains(&name);
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

    /// What was typed for a setting.
    pub(crate) fn typed(&self, name: &str) -> Option<&str> {
        self.typed.iter().find(|(known, _)| *known == name).map(|(_, typed)| typed.as_str())
    }

    /// Sets what was typed for targets of this kind, of a list its first level. Factors come from [`SettingFlags::factors`].
    pub(crate) fn set(&self, schema: &'static Schema, mut set: impl FnMut(&Param, &str)) -> Result<(), Usage> {
        // An option that is called as lanes are says how many there are: see [`LoadFlags::lanes`].
        for (name, typed) in self.typed.iter().filter(|(name, _)| *name != schema.lane.many) {
            let Some(param) = schema.param(name) else { return Err(meaningless(name, schema)) };
            set(param, levels(param, typed)?.first().map_or("", String::as_str));
        }
        Ok(())
    }

    /// Refuses what was typed, or is varied, and means nothing in this plan because a switch is off.
    pub(crate) fn refuse_unheard(&self, workload: &WorkloadPlan, factors: &[Factor]) -> Result<(), Usage> {
        let names = self.typed.iter().map(|(name, _)| *name).chain(factors.iter().map(Factor::name));
        for name in names {
            let needs = workload.schema().param(name).and_then(|param| workload.schema().needs(param));
            if let Some(switch) = needs.filter(|switch| workload.setting(switch) != "on") {
                return Err(Usage(format!("--{name} has a meaning with --{0} only; add --{0}", switch.name)));
            }
        }
        Ok(())
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
    if param.takes_lists(typed) {
        param.levels(typed).map_err(Usage)
    } else {
        Ok(vec![param.read(typed).map_err(Usage)?])
    }
}

fn meaningless(name: &str, schema: &Schema) -> Usage {
    let word = kinds::params(name).next().map_or(name, |(of, param)| of.option_names(param).0);
    let owners: Vec<String> = kinds::params(name).map(|(schema, _)| lower(schema)).collect();
    let owners = if owners.is_empty() { String::new() } else { format!(" (it is for {})", owners.join(" and ")) };
    Usage(format!("--{word} means nothing to {}{owners}; leave it out", lower(schema)))
}

/// What the targets of a kind are called in the middle of a sentence.
fn lower(schema: &Schema) -> String {
    schema.targets.to_lowercase()
}
