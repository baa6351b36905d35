//! What ops do, whoever has defined it: sysbench, or a file of own SQL.

use crate::failure;
use crate::ledger::Change;
use crate::mix::{self, Mix, Place, Segment, Statement, Step};
use crate::schema::phase;
use crate::script::{Drawn, Script};
use crate::wire::{SqlFailure, Value};
use duel_model::{FailureKind, Id, Phase};
use rand_pcg::Pcg64Mcg;

/// What the ops of a target do.
#[derive(Debug)]
pub(crate) enum Work {
    Oltp(Mix),
    Own(Box<Script>),
}

/// What was drawn for the op of a lane.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) place: Place,
    own: Drawn,
}

impl Turn {
    /// The first one of a lane that has this part of the rows.
    pub(crate) fn of(segment: Segment) -> Self {
        Self { place: Place { segment, ..Place::default() }, own: Drawn::default() }
    }
}

/// What an op does next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Next {
    /// A text without values.
    Say { text: &'static str, phase: Phase },
    /// A statement, by its number.
    Run { number: u16, is_prepared: bool, phase: Phase },
}

impl Work {
    /// How many statements there are.
    pub(crate) fn statements(&self) -> usize {
        match self {
            Self::Oltp(mix) => mix::STATEMENTS.len() * mix.tables as usize,
            Self::Own(script) => script.statements(),
        }
    }

    /// Draws what an op does.
    #[inline]
    pub(crate) fn begin(&self, turn: &mut Turn, rng: &mut Pcg64Mcg) {
        if let Self::Own(script) = self {
            script.begin(&mut turn.own, rng);
        }
    }

    /// How many steps the op has.
    #[inline]
    pub(crate) fn steps(&self, turn: &Turn) -> usize {
        match self {
            Self::Oltp(mix) => mix.steps.len(),
            Self::Own(script) => script.steps(&turn.own),
        }
    }

    /// A step of the op, with the row that it is for.
    #[inline]
    pub(crate) fn next(&self, at: usize, turn: &mut Turn, rng: &mut Pcg64Mcg) -> Next {
        match self {
            Self::Oltp(mix) => match mix.steps[at] {
                Step::Begin => Next::Say { text: mix.begin(), phase: phase::FIRST_ROW },
                Step::Commit => Next::Say { text: "COMMIT", phase: phase::COMMIT },
                Step::Run(statement, on) => {
                    mix.place(on, &mut turn.place, rng);
                    let number = mix.number(statement, turn.place.table);
                    Next::Run { number, is_prepared: mix.prepares(statement), phase: phase::FIRST_ROW }
                }
            },
            Self::Own(script) => {
                let step = script.step(&turn.own, at);
                Next::Run { number: step.number as u16, is_prepared: step.is_prepared, phase: step.phase }
            }
        }
    }

    /// All statements, each by a name for tables and its text. Those of several tables that differ in nothing else have one name; of own
    /// SQL only the line is told, for a text may hold what nobody is to see.
    pub(crate) fn named(&self) -> Vec<(String, String)> {
        let named = (0..self.statements()).filter_map(|number| {
            let number = u16::try_from(number).ok()?;
            Some(match self {
                Self::Oltp(mix) => {
                    let (statement, table) = mix.numbered(number);
                    let name = statement.parts(0).join("?");
                    let name = if mix.tables > 1 { name.replace("sbtest1", "sbtestN") } else { name };
                    (name, statement.prepared(table, mix.system))
                }
                Self::Own(script) => {
                    (format!("line {} of the script", script.line(number.into())), self.prepared(number))
                }
            })
        });
        named.filter(|(_, text)| !text.is_empty()).chain([("COMMIT".to_owned(), "COMMIT".to_owned())]).collect()
    }

    /// The text of a statement with places for values.
    pub(crate) fn prepared(&self, number: u16) -> String {
        match self {
            Self::Oltp(mix) => {
                let (statement, table) = mix.numbered(number);
                statement.prepared(table, mix.system)
            }
            Self::Own(script) => script.prepared(number.into()).unwrap_or_default().to_owned(),
        }
    }

    /// The values of a statement that is prepared.
    #[inline]
    pub(crate) fn values(&self, number: u16, turn: &mut Turn, rng: &mut Pcg64Mcg, values: &mut Vec<Value>) {
        match self {
            Self::Oltp(mix) => mix.values(mix.numbered(number).0, turn.place, rng, values),
            Self::Own(script) => script.values(number.into(), &mut turn.own, rng, values),
        }
    }

    /// The text of a statement with values in it.
    pub(crate) fn text(
        &self,
        number: u16,
        turn: &mut Turn,
        rng: &mut Pcg64Mcg,
        values: &mut Vec<Value>,
        text: &mut String,
    ) {
        match self {
            Self::Oltp(mix) => {
                let (statement, table) = mix.numbered(number);
                if statement == Statement::BulkInsert {
                    mix.bulk(&mut turn.place, text);
                    return;
                }
                mix.values(statement, turn.place, rng, values);
                mix::literal(mix.parts(number, statement, table), values, mix.system, text);
            }
            Self::Own(script) => script.text(number.into(), &mut turn.own, rng, text),
        }
    }

    /// Whether a step can rightly have answered and changed so many rows. Of own SQL nobody knows.
    #[inline]
    pub(crate) fn check(&self, at: usize, turn: &Turn, rows: u64, changed: u64) -> Result<(), SqlFailure> {
        match self {
            Self::Oltp(mix) => match mix.steps[at] {
                Step::Run(statement, _) => statement.check(mix, turn.place, rows, changed),
                Step::Begin | Step::Commit => Ok(()),
            },
            Self::Own(_) => Ok(()),
        }
    }

    /// A statement failed, the one of this number or of a step: of own SQL its line in the file is told, too.
    #[cold]
    pub(crate) fn told(&self, number: Option<u16>, at: usize, turn: &Turn, why: SqlFailure) -> SqlFailure {
        let Self::Own(script) = self else { return why };
        let number = number.map_or_else(|| script.step(&turn.own, at).number, usize::from);
        SqlFailure { text: script.told(number, &why.text), ..why }
    }

    /// Notes what a step has changed.
    #[inline]
    pub(crate) fn note(&self, at: usize, turn: &Turn, changed: u64, change: &mut Change) {
        if let Self::Oltp(mix) = self
            && let Step::Run(statement, _) = mix.steps[at]
        {
            change.note(statement, changed, turn.place);
        }
    }

    /// Whether each statement stays, whatever becomes of its op.
    #[inline]
    pub(crate) fn settles_each(&self) -> bool {
        match self {
            Self::Oltp(mix) => mix.steps[0] != Step::Begin,
            Self::Own(_) => true,
        }
    }

    /// Whether an op whose step failed for this reason may begin again: nothing of it must have stayed. A key of own SQL that is
    /// there already is there the next time, too.
    #[cold]
    pub(crate) fn may_retry(&self, at: usize, turn: &Turn, kind: FailureKind) -> bool {
        let is_of_others = [failure::DEADLOCK, failure::SERIALIZATION].contains(&kind);
        match self {
            Self::Oltp(_) => is_of_others || kind == failure::DUPLICATE,
            Self::Own(script) => is_of_others && script.is_undone(&turn.own, at),
        }
    }

    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// An op of own SQL ended in an open transaction, whatever its words look like.
    #[cold]
    pub(crate) fn left_open(&self) -> SqlFailure {
        let text = "the server says that a transaction is still open behind the last statement; it was rolled back, so that the \
                    next one does not run within it: end it by COMMIT";
        SqlFailure::new(failure::ERROR, text)
    }

    /// Transactions of the database that an op is; `None`: that differs from op to op.
    pub(crate) fn transactions(&self) -> Option<u64> {
        match self {
            // Each step is a transaction where none encloses them.
            Self::Oltp(mix) => Some(if mix.steps[0] == Step::Begin { 1 } else { mix.steps.len() as u64 }),
            Self::Own(script) => script.transactions_each(),
        }
    }

    /// Whether something may be changed.
    pub(crate) fn writes(&self) -> bool {
        match self {
            Self::Oltp(mix) => mix.writes,
            Self::Own(script) => script.writes(),
        }
    }

    /// Rows that an op without an answer may have written, each of its statements one but a bulk insert.
    pub(crate) fn rows_at_stake(&self, turn: &Turn) -> u64 {
        match self {
            Self::Oltp(mix) if mix.is_bulk() => turn.place.rows as u64,
            Self::Oltp(_) | Self::Own(_) => 1,
        }
    }

    /// Whether a row may come or go with a `k` of its own.
    pub(crate) fn moves_k(&self) -> bool {
        matches!(self, Self::Oltp(mix) if mix.moves_k())
    }

    /// What a new connection prepares before its first op; none where that is more than so many.
    pub(crate) fn prepared_ahead(&self, most: usize) -> Vec<u16> {
        let all = match self {
            Self::Oltp(mix) => mix.prepared_ahead(most),
            Self::Own(script) => script.prepared_ahead(),
        };
        if all.len() > most { Vec::new() } else { all }
    }

    /// Room for the figures of transactions that have names.
    pub(crate) fn figures(&self) -> Vec<Figures> {
        match self {
            Self::Oltp(_) => Vec::new(),
            Self::Own(script) => vec![Figures::default(); script.transactions()],
        }
    }

    /// An op has ended well.
    #[inline]
    pub(crate) fn ended(&self, turn: &Turn, took_ns: u64, figures: &mut [Figures]) {
        if let (Self::Own(_), Some(of)) = (self, figures.get_mut(Script::chosen(&turn.own))) {
            of.ops += 1;
            of.time_ns = of.time_ns.saturating_add(took_ns);
        }
    }

    /// The figures since the last call, by name.
    pub(crate) fn take_figures(&self, figures: &mut [Figures]) -> Vec<(Id, u64)> {
        let Self::Own(script) = self else { return Vec::new() };
        let mut all = Vec::new();
        for (number, of) in figures.iter_mut().enumerate() {
            let Figures { ops, time_ns } = std::mem::take(of);
            if let Some((name, time)) = script.names(number) {
                all.extend([(name, ops), (time, time_ns)]);
            }
        }
        all
    }
}

/// Ops of a transaction that ended well, and how long they took together.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    ops: u64,
    time_ns: u64,
}
