//! What to type to mean a plan: the way back from the command line.

use crate::text::shell_line;
use crate::units::typed_duration as time;
use crate::{
    Arrival, Body, Bound, ComparePlan, HttpPlan, LoadPlan, LoopKind, Param, Plan, RestartCommand, RestartPlan, Stage,
    Threads, WorkloadPlan,
};
use std::path::Path;

impl Plan {
    /// The command line that means this plan, for a shell; on any machine, without an archive.
    ///
    /// It is to be shown: what [`Plan::shown`] leaves out has to be put in its place again. `None` where no words mean the
    /// plan ([`Plan::words`]), or a shell cannot be given them in a line that is safe to show.
    pub fn command(&self) -> Option<String> {
        shell_line(&self.shown().words()?)
    }

    /// The same in words, the program's name first. What the plan has in common with one for which nothing was typed is
    /// left out, unless that is another on another machine or at another time.
    ///
    /// How the machines of its targets are read is not in it: elsewhere "this machine" is another one, and an id another
    /// process. Values of header fields that are secret stand in it as [`Plan::REDACTED`]. `None` for a plan that no
    /// options mean.
    pub fn words(&self) -> Option<Vec<String>> {
        let mut options = Options(Vec::new());
        match &self.redacted().workload {
            WorkloadPlan::Http(http) => {
                options.load(&self.load, Threads::OfDuel);
                options.request(http)?;
            }
            WorkloadPlan::Plain(kind) => options.load(&self.load, kind.schema.threads),
        }
        // A factor's levels stand in `--vary`.
        let varied = |param: &Param| self.factors.iter().any(|factor| factor.name() == param.name);
        let schema = self.schema();
        for (param, value) in self.workload.changed().filter(|(param, _)| !varied(param)) {
            match (schema.switched_off_by(param), param.is_switch()) {
                (Some(off), _) if value == "off" => options.flag(&format!("--{}", off.option), true),
                (_, true) if value == "on" => options.flag(&schema.option(param), true),
                (_, true) => options.flag(&format!("{}={value}", schema.option(param)), true),
                (_, false) => options.value(&schema.option(param), param.typed(&value)),
            }
        }
        for factor in &self.factors {
            let levels: Vec<String> = (0..factor.levels()).map(|level| factor.typed(level)).collect();
            options.value("--vary", format!("{}={}", factor.name(), levels.join(",")));
        }
        let mut words = vec!["duel".to_owned()];
        match self.targets.len() {
            0 => return None,
            1 => {
                words.push("run".to_owned());
                options.single(self);
            }
            _ => options.comparison(&self.redacted().compare)?,
        }
        let targets = self.targets.iter().map(|target| format!("{}={}", target.name, target.address));
        if targets.clone().any(|target| target.starts_with('-')) {
            words.extend(options.0);
            words.push("--".to_owned());
            words.extend(targets);
        } else {
            words.extend(targets);
            words.extend(options.0);
        }
        Some(words)
    }
}

/// Options and their values in the order in which they are typed.
struct Options(Vec<String>);

impl Options {
    fn flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.to_owned()));
    }

    /// A value that begins like an option is bound to its name.
    fn value(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if value.starts_with('-') {
            self.0.push(format!("{name}={value}"));
        } else {
            self.0.extend([name.to_owned(), value]);
        }
    }

    /// A path, unless it is no text.
    fn path(&mut self, name: &str, path: &Path) -> Option<()> {
        self.value(name, path.to_str()?);
        Some(())
    }

    /// Options with their values, those without one being flags.
    fn all(&mut self, options: Vec<(&'static str, Option<String>)>) {
        for (name, value) in options {
            match value {
                Some(value) => self.value(name, value),
                None => self.flag(name, true),
            }
        }
    }

    fn load(&mut self, load: &LoadPlan, counted: Threads) {
        let (stages, search, usual) = (&load.shape.stages, &load.shape.search, LoadPlan::default());
        if counted != Threads::OfDuel {
            self.value("-t", load.connections.to_string());
        } else {
            if stages.is_empty() || stages.iter().all(Stage::is_of_rate) {
                self.value("-c", load.connections.to_string());
            }
            // Their default depends on the machine.
            self.value("-t", load.threads.to_string());
        }
        match load.kind {
            LoopKind::Closed { think_ns: 0 } => {}
            LoopKind::Closed { think_ns } => self.value("--think", time(think_ns)),
            LoopKind::Open { rate_per_s, arrival } => {
                // Stages have rates of their own, and a search may find out where to begin.
                if stages.is_empty() && rate_per_s > 0.0 {
                    self.value("--rate", rate_per_s.to_string());
                }
                if arrival == Arrival::Poisson {
                    self.value("--arrival", "poisson");
                }
            }
        }
        if !stages.is_empty() {
            self.value("--stages", stages.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
        }
        if let Some(search) = search {
            let promises: Vec<String> = search.promises.iter().map(ToString::to_string).collect();
            self.value("--find-rate", promises.join(","));
        }
        self.flag("--one-at-a-time", load.shape.one_at_a_time);
        if let Some(ns) = load.shape.deadline_ns {
            self.value("--deadline", time(ns));
        }
        if load.busy_poll != usual.busy_poll && !matches!(counted, Threads::Beside | Threads::Working) {
            self.value("--busy-poll", load.busy_poll.name().to_owned());
        }
        if load.op_timeout_ns != usual.op_timeout_ns {
            self.value("--timeout", time(load.op_timeout_ns));
        }
        if load.connect_timeout_ns != usual.connect_timeout_ns {
            self.value("--connect-timeout", time(load.connect_timeout_ns));
        }
    }

    /// What only a run on one target has.
    fn single(&mut self, plan: &Plan) {
        match plan.load.bound {
            // Stages say it themselves.
            Bound::Duration(_) if !plan.load.shape.stages.is_empty() => {}
            Bound::Duration(ns) => self.value("-d", time(ns)),
            Bound::Ops(ops) => self.value("-n", ops.to_string()),
        }
        self.value("--seed", plan.compare.seed.to_string());
    }

    /// What only a comparison has. No option sets how sure intervals are and how many pairs they take; an archive of
    /// somebody else may hold others.
    fn comparison(&mut self, compare: &ComparePlan) -> Option<()> {
        let usual = ComparePlan::default();
        if compare.confidence != usual.confidence || compare.min_pairs != usual.min_pairs {
            return None;
        }
        self.value("-d", time(compare.max_load_ns));
        self.value("--seed", compare.seed.to_string());
        if compare.margin != usual.margin {
            self.value("--margin", compare.margin.to_string());
        }
        if let Some(ns) = compare.slot_ns {
            self.value("--slot", time(ns));
        }
        self.flag("--no-early-stop", !compare.stop_early);
        if let Some(restart) = &compare.restart {
            for RestartCommand { target, command } in &restart.commands {
                self.value("--restart", format!("{target}={command}"));
            }
            if restart.timeout_ns != RestartPlan::TIMEOUT_NS {
                self.value("--restart-timeout", time(restart.timeout_ns));
            }
        }
        Some(())
    }

    fn request(&mut self, http: &HttpPlan) -> Option<()> {
        // Only `duel hey` makes such plans.
        if http.accepts_any_status {
            return None;
        }
        http.headers.iter().for_each(|(name, value)| self.value("-H", format!("{name}: {value}")));
        if let Some(bytes) = http.range_bytes {
            self.value("-H", format!("Range: bytes=0-{}", bytes.saturating_sub(1)));
        }
        match &http.body {
            Body::None | Body::Generated(_) => {}
            Body::Text(text) => self.value("--body", text),
            Body::File(path) => self.path("--body-file", path)?,
        }
        if http.max_redirects > 0 {
            let option = if http.follows_each { "--follow-each" } else { "--follow" };
            self.value(option, http.max_redirects.to_string());
        }
        self.all(http.requests.options()?);
        http.connect_to.iter().for_each(|rule| self.value("--connect-to", rule.to_string()));
        // Who asks the proxy stands in a header field.
        http.proxy.iter().for_each(|proxy| self.value("--proxy", proxy.to_string()));
        self.all(http.reach.options());
        Some(())
    }
}
