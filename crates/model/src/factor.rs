//! Factors: what an experiment varies, and the treatments that come of it.

use crate::web::settings;
use crate::{Arrival, Id, LoopKind, Param, Plan, Schema, Sort, Threads, kinds, sanitize_line};
use serde::{Deserialize, Serialize};

/// A parameter that an experiment varies, with its levels in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Kept", into = "Kept")]
pub enum Factor {
    /// Connections to each target.
    Connections(Vec<u32>),
    /// Requests per second of an open loop.
    Rate(Vec<f64>),
    /// Path and query that replace those of each target's address; they begin with `/`.
    Path(Vec<String>),
    /// A setting that a kind of work declares.
    Setting(SettingLevels),
}

/// Levels of a declared setting, each as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingLevels {
    /// Whose setting.
    pub schema: &'static Schema,
    /// Which setting.
    pub param: &'static Param,
    /// Its values.
    pub levels: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum KeptLevel {
    Switch(bool),
    Number(u64),
    Text(String),
    Names(Vec<String>),
}

macro_rules! kept {
    ($($same:ident($levels:ty)),+; $($before:ident = $param:ident),+) => {
        /// A factor as it is kept. Settings that were factors before they were declared stand under names of their own, with levels
        /// as fields of a plan have them.
        #[derive(Serialize, Deserialize)]
        #[serde(tag = "name", content = "levels", rename_all = "kebab-case")]
        enum Kept {
            $($same($levels),)+
            $($before(Vec<KeptLevel>),)+
            Setting(KeptLevels),
        }

        impl From<Factor> for Kept {
            fn from(factor: Factor) -> Self {
                match factor {
                    $(Factor::$same(levels) => Self::$same(levels),)+
                    $(Factor::Setting(of) if *of.param == settings::$param => {
                        Self::$before(of.levels.iter().map(|level| KeptLevel::of(of.param, level)).collect())
                    })+
                    Factor::Setting(of) => Self::Setting(of.into()),
                }
            }
        }

        impl TryFrom<Kept> for Factor {
            type Error = String;

            fn try_from(kept: Kept) -> Result<Self, String> {
                let levels = match kept {
                    $(Kept::$same(levels) => return Ok(Self::$same(levels)),)+
                    $(Kept::$before(levels) => KeptLevels {
                        kind: Some(Id::new(crate::web::SCHEMA.kind)),
                        param: settings::$param.id(),
                        levels: levels.into_iter().map(|level| level.of_setting(&settings::$param)).collect(),
                    },)+
                    Kept::Setting(levels) => levels,
                };
                levels.try_into().map(Self::Setting)
            }
        }
    };
}

kept! {
    Connections(Vec<u32>), Rate(Vec<f64>), Path(Vec<String>);
    BodySize = BODY_SIZE, Encoding = ENCODING, Method = METHOD, Tls = TLS, Cipher = CIPHER, Group = GROUP,
    Resumption = RESUMPTION, Keepalive = KEEPALIVE
}

impl KeptLevel {
    fn of(param: &Param, level: &str) -> Self {
        match param.sort {
            Sort::Switch | Sort::Choice(_) => Self::Switch(level == "on"),
            Sort::Bytes { .. } => Self::Number(level.parse().unwrap_or(0)),
            Sort::Ranked { none, .. } if level == none => Self::Names(Vec::new()),
            Sort::Ranked { .. } => Self::Names(level.split('+').map(str::to_owned).collect()),
            _ => Self::Text(level.to_owned()),
        }
    }

    fn of_setting(self, param: &Param) -> String {
        match self {
            Self::Switch(is_on) => if is_on { "on" } else { "off" }.to_owned(),
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Names(names) => {
                let typed = names.join("+");
                let without = if typed.is_empty() { param.default.to_owned() } else { typed.clone() };
                // In the spelling of today: `identity` beside other codings was a name like them.
                param.read(&typed).unwrap_or(without)
            }
        }
    }
}

#[derive(Serialize, Deserialize)]
struct KeptLevels {
    /// Absent in runs from before several kinds had settings of one name.
    #[serde(default)]
    kind: Option<Id>,
    param: Id,
    levels: Vec<String>,
}

impl From<SettingLevels> for KeptLevels {
    fn from(of: SettingLevels) -> Self {
        Self { kind: Some(Id::new(of.schema.kind)), param: of.param.id(), levels: of.levels }
    }
}

impl TryFrom<KeptLevels> for SettingLevels {
    type Error = String;

    fn try_from(kept: KeptLevels) -> Result<Self, String> {
        let is_its = |schema: &Schema| kept.kind.is_none_or(|kind| kind.name() == schema.kind);
        let found = kinds::params(kept.param.name()).find(|(schema, _)| is_its(schema));
        let (schema, param) = found.ok_or_else(|| format!("'{}' is no setting that this duel knows", kept.param))?;
        if !param.can_vary() {
            return Err(format!("{} cannot be varied", param.name));
        }
        for level in &kept.levels {
            if param.read(level)? != *level {
                return Err(format!("'{}' is no value of {}", sanitize_line(level), param.name));
            }
        }
        Ok(Self { schema, param, levels: kept.levels })
    }
}

impl Factor {
    /// The names of all factors, as they are typed.
    pub const NAMES: [&'static str; 3] = ["connections", "rate", "path"];

    /// The names of all that can be varied in this kind of work.
    pub fn names(schema: &'static Schema) -> impl Iterator<Item = &'static str> {
        let own = if schema.kind == crate::web::SCHEMA.kind { &Self::NAMES[..] } else { &Self::NAMES[..2] };
        let settings = schema.params.iter().filter(|param| param.can_vary()).map(|param| param.name);
        own.iter().copied().chain(settings)
    }

    /// The factor's name, as it is typed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connections(_) => "connections",
            Self::Rate(_) => "rate",
            Self::Path(_) => "path",
            Self::Setting(of) => of.param.name,
        }
    }

    /// Number of levels.
    pub fn levels(&self) -> usize {
        match self {
            Self::Connections(levels) => levels.len(),
            Self::Rate(levels) => levels.len(),
            Self::Path(levels) => levels.len(),
            Self::Setting(of) => of.levels.len(),
        }
    }

    /// A level as it is typed; empty where there is no such level. Foreign text: to be made safe before it is shown.
    pub fn typed(&self, level: usize) -> String {
        let typed = match self {
            Self::Connections(levels) => levels.get(level).map(u32::to_string),
            Self::Rate(levels) => levels.get(level).map(f64::to_string),
            Self::Path(levels) => levels.get(level).cloned(),
            Self::Setting(of) => of.levels.get(level).cloned(),
        };
        typed.unwrap_or_default()
    }

    /// A level as it is read: as typed, sizes with their unit.
    pub fn label(&self, level: usize) -> String {
        match self {
            Self::Setting(of) => of.levels.get(level).map(|kept| of.param.label(kept)).unwrap_or_default(),
            _ => self.typed(level),
        }
    }

    /// A level as a number, where levels are numbers.
    pub fn number(&self, level: usize) -> Option<f64> {
        match self {
            Self::Connections(levels) => levels.get(level).map(|&connections| f64::from(connections)),
            Self::Rate(levels) => levels.get(level).copied(),
            Self::Setting(of) => of.levels.get(level).and_then(|kept| of.param.number(kept)),
            _ => None,
        }
    }

    /// Changes a plan to this level. A plan whose workload does not know the parameter stays as it is.
    fn apply(&self, level: usize, plan: &mut Plan) {
        match self {
            Self::Connections(levels) => {
                if let Some(&connections) = levels.get(level) {
                    plan.load.connections = connections;
                }
            }
            Self::Rate(levels) => {
                if let Some(&rate_per_s) = levels.get(level) {
                    let arrival = match plan.load.kind {
                        LoopKind::Open { arrival, .. } => arrival,
                        LoopKind::Closed { .. } => Arrival::Constant,
                    };
                    plan.load.kind = LoopKind::Open { rate_per_s, arrival };
                }
            }
            Self::Path(levels) => {
                if let Some(path) = levels.get(level) {
                    for target in &mut plan.targets {
                        target.address = with_path(&target.address, path);
                    }
                }
            }
            Self::Setting(of) => {
                if let Some(value) = of.levels.get(level).filter(|_| plan.schema() == of.schema) {
                    plan.workload.set(of.param, value);
                }
            }
        }
    }
}

impl Plan {
    /// Most treatments that are run and judged. Even with the shortest slots that say anything, more take hours; who asks
    /// for more has usually multiplied factors without wanting to.
    pub const MOST_TREATMENTS: usize = 200;

    /// Number of treatments: of combinations of one level of each factor. 1 without factors.
    pub fn treatments(&self) -> usize {
        self.factors.iter().map(Factor::levels).fold(1, usize::saturating_mul)
    }

    /// Which level of a factor a treatment has. Treatments are counted like the digits of a number: the last factor
    /// changes from each one to the next.
    pub fn level_of(&self, treatment: usize, factor: usize) -> usize {
        let behind = self.factors.iter().skip(factor + 1).map(Factor::levels).fold(1, usize::saturating_mul);
        let levels = self.factors.get(factor).map_or(1, Factor::levels);
        treatment / behind.max(1) % levels.max(1)
    }

    /// The plan of one treatment, without factors.
    #[must_use]
    pub fn treated(&self, treatment: usize) -> Self {
        let mut plan = self.clone();
        for (place, factor) in self.factors.iter().enumerate() {
            factor.apply(self.level_of(treatment, place), &mut plan);
        }
        plan.factors.clear();
        plan.load.threads = match plan.schema().threads {
            Threads::Working => plan.load.connections,
            _ => plan.load.threads.min(plan.load.connections),
        };
        plan
    }

    /// A treatment in words: `connections 8, method GET`. Foreign text: to be made safe before it is shown.
    pub fn treatment_name(&self, treatment: usize) -> String {
        let level = |(place, factor): (usize, &Factor)| {
            format!("{} {}", factor.name(), factor.label(self.level_of(treatment, place)))
        };
        self.factors.iter().enumerate().map(level).collect::<Vec<_>>().join(", ")
    }
}

/// An address with another path and query.
fn with_path(address: &str, path: &str) -> String {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{authority}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, ComparePlan, LoadPlan, Target, WorkloadPlan};

    fn plan(factors: Vec<Factor>) -> Plan {
        Plan {
            targets: vec![Target { name: "A".into(), address: "https://[::1]:81/a?b#c".into(), host: None }],
            workload: WorkloadPlan::Http(Box::default()),
            load: LoadPlan { connections: 50, threads: 4, ..LoadPlan::default() },
            compare: ComparePlan::default(),
            factors,
        }
    }

    fn setting(param: &'static Param, levels: &[&str]) -> Factor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        Factor::Setting(SettingLevels { schema: &crate::web::SCHEMA, param, levels })
    }

    #[test]
    fn what_was_a_factor_before_it_was_a_setting_is_kept_as_then() {
        for (kept, typed) in [
            (r#"{"name":"keepalive","levels":[true,false]}"#, ["on", "off"]),
            (r#"{"name":"method","levels":["GET","HEAD"]}"#, ["GET", "HEAD"]),
            (r#"{"name":"resumption","levels":[false,true]}"#, ["off", "on"]),
            (r#"{"name":"tls","levels":[["1.2"],["1.3","1.2"]]}"#, ["1.2", "1.3+1.2"]),
            (r#"{"name":"cipher","levels":[["A"],["B","A"]]}"#, ["A", "B+A"]),
            (r#"{"name":"cipher","levels":[[],["A"]]}"#, ["all", "A"]),
            (r#"{"name":"group","levels":[["a"],["b","a"]]}"#, ["a", "b+a"]),
            (r#"{"name":"encoding","levels":[[],["gzip","br"]]}"#, ["identity", "gzip+br"]),
            (r#"{"name":"body-size","levels":[0,65536]}"#, ["0", "65536"]),
        ] {
            let factor: Factor = serde_json::from_str(kept).unwrap();
            assert_eq!([0, 1].map(|level| factor.typed(level)), typed, "{kept}");
            assert_eq!(serde_json::to_string(&factor).unwrap(), kept);
        }
        // It was taken, and asks for the same: whoever takes others takes a response as it is, too.
        let said_twice = r#"{"name":"encoding","levels":[["identity","gzip"],["br"]]}"#;
        assert_eq!(serde_json::from_str::<Factor>(said_twice).unwrap().typed(0), "gzip");
        for wrong in [r#"{"name":"tls","levels":[["1.1"]]}"#, r#"{"name":"keepalive","levels":[["on","off"]]}"#] {
            assert!(serde_json::from_str::<Factor>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn treatments_are_all_combinations_and_each_has_its_own_plan() {
        let plan = plan(vec![
            Factor::Connections(vec![1, 8]),
            setting(&settings::KEEPALIVE, &["on", "off"]),
            setting(&settings::ENCODING, &["identity", "gzip+br", "gzip"]),
        ]);
        assert_eq!(plan.treatments(), 12);
        let names: std::collections::BTreeSet<String> = (0..12).map(|t| plan.treatment_name(t)).collect();
        assert_eq!(names.len(), 12);
        assert_eq!(plan.treatment_name(0), "connections 1, keepalive on, encoding identity");
        assert_eq!(plan.treatment_name(10), "connections 8, keepalive off, encoding gzip+br");
        let treated = plan.treated(10);
        let WorkloadPlan::Http(http) = &treated.workload else { panic!("it was http") };
        assert_eq!((treated.load.connections, treated.load.threads, http.keepalive), (8, 4, false));
        assert_eq!((http.accept_encoding.as_deref(), treated.treatments()), (Some("gzip, br"), 1));
        assert_eq!(plan.treated(0).load.threads, 1, "no more threads than connections");
    }

    #[test]
    fn a_path_replaces_path_and_query() {
        let plan = plan(vec![Factor::Path(vec!["/x?y=z".into(), "/".into()])]);
        assert_eq!(plan.treated(0).targets[0].address, "https://[::1]:81/x?y=z");
        assert_eq!(plan.treated(1).targets[0].address, "https://[::1]:81/");
        assert_eq!(with_path("http://h", "/x"), "http://h/x");
    }

    #[test]
    fn a_rate_makes_an_open_loop_and_a_size_a_body() {
        let plan = plan(vec![Factor::Rate(vec![100.0, 0.5]), setting(&settings::BODY_SIZE, &["0", "65536"])]);
        let treated = plan.treated(3);
        assert_eq!(treated.load.kind, LoopKind::Open { rate_per_s: 0.5, arrival: Arrival::Constant });
        let WorkloadPlan::Http(http) = &treated.workload else { panic!("it was http") };
        assert_eq!(http.body, Body::Generated(65_536));
        assert_eq!(plan.treatment_name(3), "rate 0.5, body-size 64 KiB");
        let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
    }

    #[test]
    fn a_plan_that_was_kept_before_there_were_factors_has_none() {
        let mut old = serde_json::to_value(plan(vec![])).unwrap();
        assert!(old.get("factors").is_none());
        old["targets"] = serde_json::json!([]);
        let read: Plan = serde_json::from_value(old).unwrap();
        assert_eq!((read.treatments(), read.factors.len()), (1, 0));
    }
}
