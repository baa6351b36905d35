//! What may be shown of a plan and of a run: the one place that all outputs go through.
//!
//! An archive keeps what a repetition needs, for its owner alone: addresses and request bodies as they are. What is shown
//! is sent to others, and is without them: reports, JSON, exports, pages and charts are made of [`Run::shown`].

use crate::{
    Body, Difference, Doubt, Evidence, Explanation, Factor, Facts, Finding, FormValue, HostAccess, HostRecord,
    Interruption, KernelLine, Known, Leads, LensIdentity, LensReading, NotMade, PairVerdict, Plan, Probe, ProbeOutcome,
    RestartPlan, Run, RunStatus, Slot, SlowOps, Tally, Target, TargetObservation, TwinReading, Unread, Value,
    WorkloadPlan, public_address, sanitize, sanitize_line, shell_word, without_secrets,
};
use std::collections::BTreeMap;

impl Target {
    /// The target as it may be shown: its address without secrets.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut target = self.clone();
        target.address = public_address(&target.address);
        if let Some(host) = &mut target.host {
            if let HostAccess::Ssh(destination) = &mut host.access {
                *destination = without_secrets(destination);
            }
            if let Some(redfish) = &mut host.redfish {
                redfish.address = public_address(&redfish.address);
            }
        }
        target
    }
}

impl Plan {
    /// The plan as it may be shown: redacted, and without request bodies and the secrets of addresses, which are kept.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut plan = self.redacted();
        plan.compare.restart.iter_mut().for_each(RestartPlan::leave_out);
        for target in &mut plan.targets {
            *target = target.shown();
        }
        for factor in &mut plan.factors {
            if let Factor::Path(paths) = factor {
                paths.iter_mut().for_each(|path| *path = public_address(path));
            }
        }
        if let WorkloadPlan::Http(http) = &mut plan.workload {
            // An address may stand in any field, as in Referer.
            http.headers.iter_mut().for_each(|(_, value)| *value = without_secrets(value));
            if let Body::Text(body) = &mut http.body {
                Self::LEFT_OUT.clone_into(body);
            }
            for field in http.requests.form.iter_mut().flat_map(|form| &mut form.fields) {
                if let FormValue::Text(value) = &mut field.value {
                    Self::LEFT_OUT.clone_into(value);
                }
            }
        }
        plan
    }

    /// Where something was left out of what was shown and then typed anew, in words; `None`: nowhere.
    pub fn left_out(&self) -> Option<String> {
        let is_left_out = |text: &str| text.contains(Self::LEFT_OUT) || text.contains(Self::REDACTED);
        if let Some(target) = self.targets.iter().find(|target| is_left_out(&target.address)) {
            return Some(format!("the address of {}", sanitize_line(&target.name)));
        }
        if let Some(target) = self.compare.restart.iter().flat_map(RestartPlan::incomplete).next() {
            return Some(format!("the command that starts {} anew", sanitize_line(target)));
        }
        let mut paths = self.factors.iter().filter_map(|factor| match factor {
            Factor::Path(paths) => Some(paths),
            _ => None,
        });
        if paths.any(|paths| paths.iter().any(|path| is_left_out(path))) {
            return Some("a path that is varied".to_owned());
        }
        let WorkloadPlan::Http(http) = &self.workload else { return None };
        let in_field = http.headers.iter().find(|(_, value)| is_left_out(value));
        if let Some((name, _)) = in_field {
            return Some(format!("the header field {}", sanitize_line(name)));
        }
        if matches!(&http.body, Body::Text(body) if is_left_out(body)) {
            return Some("the body".to_owned());
        }
        let mut fields = http.requests.form.iter().flat_map(|form| &form.fields);
        let field = fields.find(|field| matches!(&field.value, FormValue::Text(value) if is_left_out(value)));
        field.map(|field| format!("the form's field {}", sanitize_line(&field.name)))
    }
}

impl Run {
    /// The run as it may be shown. What it is judged by stays as it is.
    #[must_use]
    pub fn shown(mut self) -> Self {
        let secrets = PlanSecrets::of(&self.plan);
        let plan = self.plan.shown();
        let Self {
            // Of our own making, or of the plan's, which follows.
            id: _,
            started_unix_ms: _,
            waiting: _,
            plan: _,
            versions: _,
            slots,
            first_contact,
            hosts,
            status,
            doubts,
            explanation,
        } = &mut self;
        let change = &mut |text: &mut String| {
            let public = secrets.left_out(text);
            if public != *text {
                *text = public;
            }
        };
        slots.each(change);
        first_contact.each(change);
        hosts.each(change);
        status.each(change);
        doubts.each(change);
        explanation.each(change);
        self.plan = plan;
        self
    }
}

impl RunStatus {
    /// How a run ended, as it may be shown.
    #[must_use]
    pub fn shown(mut self) -> Self {
        self.each(&mut |text| *text = without_secrets(text));
        self
    }
}

impl HostRecord {
    /// What was read of a machine, as it may be shown.
    #[must_use]
    pub fn shown(mut self) -> Self {
        self.each(&mut |text| *text = without_secrets(text));
        self
    }
}

/// What is secret in a plan and may come back in other texts, such as commands that repeat a probe; each with what stands
/// in its place, the longest first, so that none hides a part of another.
#[derive(Debug, Default)]
pub struct PlanSecrets(Vec<(String, String)>);

impl PlanSecrets {
    /// Those of a plan: request bodies, and what is secret in addresses.
    pub fn of(plan: &Plan) -> Self {
        let mut texts = Vec::new();
        let mut add = |secret: &str, public: &str| {
            // As it was typed, and as it was made safe.
            for (secret, public) in [
                (secret.to_owned(), public.to_owned()),
                (sanitize(secret).replace(['\n', '\t'], " "), sanitize(public)),
            ] {
                if secret != public {
                    texts.push((secret, public));
                }
            }
        };
        plan.targets.iter().for_each(|target| add(&target.address, &public_address(&target.address)));
        for factor in &plan.factors {
            if let Factor::Path(paths) = factor {
                paths.iter().for_each(|path| add(path, &public_address(path)));
            }
        }
        if let WorkloadPlan::Http(http) = &plan.workload {
            if let Body::Text(body) = &http.body {
                // As it stands in commands, and by itself; a few letters by themselves are in every word.
                add(&format!("--body {}", shell_word(body)), &format!("--body {}", shell_word(Plan::LEFT_OUT)));
                if body.chars().count() >= SHORTEST_SECRET {
                    add(body, Plan::LEFT_OUT);
                }
            }
            for field in http.requests.form.iter().flat_map(|form| &form.fields) {
                if let FormValue::Text(value) = &field.value {
                    let typed = |value: &str| shell_word(&format!("{}={value}", field.name));
                    add(&typed(value), &typed(Plan::LEFT_OUT));
                }
            }
        }
        texts.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Self(texts)
    }

    /// A text without them, and without whatever else is secret in the addresses in it.
    pub fn left_out(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (secret, public) in &self.0 {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), public);
            }
        }
        without_secrets(&text)
    }
}

/// Fewest characters of a body that is looked for by itself.
const SHORTEST_SECRET: usize = 4;

/// What has texts that somebody else may have written. Every field is named, so that a new one cannot be forgotten.
trait Texts {
    fn each(&mut self, change: &mut dyn FnMut(&mut String));
}

impl Texts for String {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        change(self);
    }
}

impl<T: Texts> Texts for Option<T> {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(|inner| inner.each(change));
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        self.iter_mut().for_each(|inner| inner.each(change));
    }
}

impl<K: Ord, T: Texts> Texts for BTreeMap<K, T> {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        self.values_mut().for_each(|inner| inner.each(change));
    }
}

impl Texts for Slot {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self {
            index: _,
            target: _,
            role: _,
            block: _,
            repeat: _,
            turns: _,
            treatment: _,
            start: _,
            started_unix_ms: _,
            offset_ns: _,
            elapsed_ns: _,
            offered_per_s: _,
            died_ns: _,
            tally,
            // Figures alone.
            series: _,
            audit: _,
            negotiated,
        } = self;
        let Tally {
            started: _,
            ok: _,
            failed: _,
            in_flight: _,
            unstarted: _,
            ok_in_run_up: _,
            failed_in_run_up: _,
            shed: _,
            bytes_in: _,
            bytes_out: _,
            body_bytes: _,
            failed_body_bytes: _,
            inflated_bytes: _,
            connections: _,
            resumed: _,
            reused: _,
            resent: _,
            surplus: _,
            counted: _,
            statuses: _,
            response: _,
            service: _,
            queue: _,
            phases: _,
            failure_examples,
            stages: _,
        } = tally;
        failure_examples.each(change);
        negotiated.each(change);
    }
}

impl Texts for Facts {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        // Runs of earlier versions have addresses as they were sent.
        *self = std::mem::take(self).kept();
        let Self(facts) = self;
        facts.each(change);
    }
}

impl Texts for RunStatus {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Complete | Self::Interrupted(Interruption::User | Interruption::Unfinished) => {}
            Self::Interrupted(Interruption::TargetDied { target: _, at_ns: _, how }) => change(how),
        }
    }
}

impl Texts for Doubt {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { id: _, target: _, text } = self;
        change(text);
    }
}

impl Texts for HostRecord {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { how, facts, samples: _, last_words, watched_from_uptime_ns: _, lost, doubts } = self;
        change(how);
        facts.each(change);
        last_words.each(change);
        lost.each(change);
        doubts.each(change);
    }
}

impl Texts for Known {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Value(Value::YesNo(_) | Value::Number(_)) => {}
            Self::Value(Value::Text(text)) | Self::Unavailable(text) => change(text),
            Self::Value(Value::List(texts)) => texts.each(change),
        }
    }
}

impl Texts for KernelLine {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { uptime_ns: _, level: _, text } = self;
        change(text);
    }
}

impl Texts for Explanation {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { findings, ruled_out: _, probes } = self;
        findings.each(change);
        probes.each(change);
    }
}

impl Texts for Finding {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { cause: _, target: _, confidence: _, explains: _, summary, evidence, remedy, leads } = self;
        change(summary);
        evidence.each(change);
        change(remedy);
        leads.each(change);
    }
}

impl Texts for Leads {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { slow_ops, differences, unread } = self;
        if let Some(SlowOps { probe: _, target: _, class: _, of_other: _, share_of_gap: _, text }) = slow_ops {
            change(text);
        }
        for Difference { name: _, kind: _, slow, fast, text, look } in differences {
            [slow, fast, text].into_iter().for_each(&mut *change);
            look.each(change);
        }
        for Unread { target: _, option, causes: _, text } in unread {
            [option, text].into_iter().for_each(&mut *change);
        }
    }
}

impl Texts for Evidence {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { probe: _, text, repeat, about: _ } = self;
        change(text);
        repeat.each(change);
    }
}

impl Texts for ProbeOutcome {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self { probe, pairs, targets, demands: _, lens, twin, doubts, unavailable } = self;
        let Probe { id: _, question, variation: _, budget_ns: _, takes_all: _, reads_hosts: _, lens_of: _, below: _ } =
            probe;
        change(question);
        pairs.each(change);
        targets.each(change);
        lens.each(change);
        twin.each(change);
        doubts.each(change);
        unavailable.each(change);
    }
}

impl Texts for NotMade {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        match self {
            Self::Interrupted => {}
            Self::Because(why) => change(why),
        }
    }
}

impl Texts for PairVerdict {
    fn each(&mut self, _: &mut dyn FnMut(&mut String)) {
        // Names, as they were given to the targets, and figures.
        let Self {
            baseline: _,
            target: _,
            metric: _,
            call: _,
            ratio: _,
            low: _,
            high: _,
            confidence: _,
            slots: _,
            by_whole: _,
        } = self;
    }
}

impl Texts for TargetObservation {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self {
            name: _,
            ok: _,
            failed: _,
            rate_per_s: _,
            service_mean_ns: _,
            phase_mean_ns: _,
            phase_profile: _,
            service_profile: _,
            body_bytes_per_op: _,
            bytes_in_per_op: _,
            bytes_out_per_op: _,
            generator_work_ns_per_op: _,
            counted_per_op: _,
            scatter: _,
            slow_class: _,
            stalls: _,
            connection_classes: _,
            reused_share: _,
            resumed_share: _,
            negotiated,
        } = self;
        negotiated.each(change);
    }
}

impl Texts for LensReading {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self {
            library,
            means: _,
            identity: LensIdentity { version, compiler, cpu },
            // Sentences and names of our own.
            hardware: _,
            assembly: _,
            capabilities: _,
            effects: _,
            figures: _,
            unavailable,
            corroboration,
            by_hand,
        } = self;
        change(library);
        [version, compiler, cpu].into_iter().for_each(|text| text.each(change));
        [unavailable, corroboration, by_hand].into_iter().for_each(|texts| texts.each(change));
    }
}

impl Texts for TwinReading {
    fn each(&mut self, change: &mut dyn FnMut(&mut String)) {
        let Self {
            environment_known: _,
            changed,
            libcrypto,
            may_not_hold: _,
            is_reached_otherwise: _,
            warming_was_cut: _,
            left_out,
            ended,
        } = self;
        left_out.each(change);
        [changed, libcrypto, ended].into_iter().for_each(|text| text.each(change));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComparePlan, FormField, FormPlan, HttpPlan, LoadPlan, RequestsPlan, web};

    fn plan() -> Plan {
        let form = FormPlan {
            is_multipart: false,
            fields: vec![FormField { name: "user".into(), value: FormValue::Text("me S3CR3T".into()) }],
        };
        let http = HttpPlan {
            headers: vec![("Referer".into(), "https://x/?token=S3CR3T".into()), ("Cookie".into(), "S3CR3T".into())],
            body: Body::Text("{\"pw\":\"it's S3CR3T\"}".into()),
            requests: RequestsPlan { form: Some(form), ..RequestsPlan::default() },
            ..HttpPlan::default()
        };
        Plan {
            targets: vec![Target { name: "A".into(), address: "http://a/?id=7&sig=S3CR3T".into(), host: None }],
            workload: WorkloadPlan::Http(Box::new(http)),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![Factor::Path(vec!["/x?token=S3CR3T&id=7".into()])],
        }
    }

    #[test]
    fn no_secret_of_a_plan_is_shown_and_the_rest_is() {
        let shown = serde_json::to_string(&plan().shown()).unwrap();
        assert!(!shown.contains("S3CR3T"), "{shown}");
        for part in ["id=7", "sig=[left out]", "Referer", "user"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(plan().shown().shown(), plan().shown(), "once more changes nothing");
        let command = plan().command().unwrap();
        assert!(!command.contains("S3CR3T") && command.contains("--body '[left out]'"), "{command}");
    }

    #[test]
    fn what_was_left_out_is_told_where_it_is_typed_anew() {
        assert_eq!(plan().left_out(), None);
        let mut shown = plan().shown();
        assert_eq!(shown.left_out().as_deref(), Some("the address of A"));
        shown.targets[0].address = "http://a/".into();
        assert_eq!(shown.left_out().as_deref(), Some("a path that is varied"));
        shown.factors.clear();
        assert_eq!(shown.left_out().as_deref(), Some("the header field Referer"));
    }

    #[test]
    fn a_body_that_comes_back_in_other_texts_is_left_out_there() {
        let secrets = PlanSecrets::of(&plan());
        for text in [
            "duel run 'http://a/?id=7&sig=S3CR3T' --body '{\"pw\":\"it'\\''s S3CR3T\"}' -c 1",
            "it answered {\"pw\":\"it's S3CR3T\"}",
            "--field 'user=me S3CR3T'",
            "redirect to //u:S3CR3T@h/",
        ] {
            assert!(!secrets.left_out(text).contains("S3CR3T"), "{}", secrets.left_out(text));
        }
    }

    #[test]
    fn where_a_redirect_leads_is_kept_cut_and_without_its_secrets() {
        let long = format!("https://u:S3CR3T@h/?token=S3CR3T&x={}", "y".repeat(200_000));
        let facts = Facts::default().with(web::LOCATION, long).kept();
        let kept = facts.text(web::LOCATION).unwrap();
        assert!(kept.starts_with("https://[left out]@h/?token=[left out]&x=yyy") && kept.ends_with('…'), "{kept}");
        assert_eq!(kept.chars().count(), 301);
    }
}
