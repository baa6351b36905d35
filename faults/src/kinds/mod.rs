//! The kinds of work that twins do: a folder for each says what a twin of it is, how two of them are started, how it is
//! seen without duel that they do their work, and how duel is pointed at them.
//!
//! A further kind is a folder with an implementation of [`Kind`], and a variant of [`Trial`].

pub(crate) mod disk;
pub(crate) mod net;
pub(crate) mod web;

use crate::case::Bite;
use crate::servers::Place;
use crate::world::{Launch, World};
use disk::Disk;
use net::Net;
use std::path::Path;
use web::Web;

/// A kind of work.
pub(crate) trait Kind: Copy + 'static {
    /// As ids and results have it.
    const NAME: &'static str;
    /// What is loaded, before it exists. The faulty one is a clone, to which the fault is done.
    type Twin: Clone + PartialEq;
    /// What duel is told to do with both.
    type Load: Clone;
    /// Both, running, with a place for the client beside them.
    type Arena;

    /// The set-up in words, as they stand in a case's id.
    fn words_of_setup(twin: &Self::Twin, load: &Self::Load) -> Vec<String>;

    /// Starts both. `faulty` tells which of the two the faulty one is; duel is not told.
    ///
    /// # Errors
    ///
    /// What could not be started, or that somebody has asked to stop.
    fn start(world: &World, pair: &Pair<Self>, faulty: Place, duel: &Path) -> anyhow::Result<Self::Arena>;

    /// An error where one of them does not do its work at all, as other tools see it.
    fn ensure_both_work(arena: &Self::Arena) -> anyhow::Result<()>;

    /// duel where the client is, with both addresses and the load; with `local` it may look at the machines under load.
    fn duel(arena: &Self::Arena, load: &Self::Load, duel: &Path, local: bool) -> Launch;

    /// A pair as one of any kind.
    fn trial(pair: Pair<Self>) -> Trial;

    /// The other way round; `None` where it is one of another kind.
    fn pair_of(trial: &mut Trial) -> Option<&mut Pair<Self>>;
}

/// Twins to be, and what duel is to do with them.
#[derive(Clone)]
pub(crate) struct Pair<K: Kind> {
    pub(crate) healthy: K::Twin,
    pub(crate) faulty: K::Twin,
    pub(crate) load: K::Load,
    /// Each verifies one of the faults, by other means than duel.
    pub(crate) verify: Vec<Verify<K>>,
}

/// Looks whether a fault bites.
pub(crate) type Verify<K> = fn(&<K as Kind>::Arena) -> anyhow::Result<Bite>;

/// A pair of any kind.
#[derive(Clone)]
pub(crate) enum Trial {
    Web(Box<Pair<Web>>),
    Net(Box<Pair<Net>>),
    Disk(Box<Pair<Disk>>),
}

impl Trial {
    /// The names of all kinds.
    #[cfg(test)]
    pub(crate) const KINDS: &[&str] = &[Web::NAME, Net::NAME, Disk::NAME];

    fn pair(&self) -> &dyn AnyPair {
        match self {
            Trial::Web(pair) => &**pair,
            Trial::Net(pair) => &**pair,
            Trial::Disk(pair) => &**pair,
        }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        self.pair().kind()
    }

    /// Starts both, and returns what can be done with them. `duel` is the program, also where it is no part of the client.
    pub(crate) fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage + '_>> {
        self.pair().start(world, faulty, duel)
    }

    /// Whether the twins differ at all, and how many faults are verified.
    #[cfg(test)]
    pub(crate) fn differ_and_verify(&self) -> (bool, usize) {
        self.pair().differ_and_verify()
    }
}

/// Twins that run, of whatever kind.
pub(crate) trait Stage {
    /// All faults have to bite. Equals have none; that they do their work at all is looked at.
    fn verify(&self) -> anyhow::Result<Bite>;
    /// See [`Kind::duel`].
    fn duel(&self, duel: &Path, local: bool) -> Launch;
}

/// What a pair does whatever its kind.
trait AnyPair {
    fn kind(&self) -> &'static str;
    fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage + '_>>;
    #[cfg(test)]
    fn differ_and_verify(&self) -> (bool, usize);
}

impl<K: Kind> AnyPair for Pair<K> {
    fn kind(&self) -> &'static str {
        K::NAME
    }

    fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage + '_>> {
        Ok(Box::new(Started { arena: K::start(world, self, faulty, duel)?, pair: self }))
    }

    #[cfg(test)]
    fn differ_and_verify(&self) -> (bool, usize) {
        (self.healthy != self.faulty, self.verify.len())
    }
}

struct Started<'a, K: Kind> {
    arena: K::Arena,
    pair: &'a Pair<K>,
}

impl<K: Kind> Stage for Started<'_, K> {
    fn verify(&self) -> anyhow::Result<Bite> {
        K::ensure_both_work(&self.arena)?;
        let bites = self.pair.verify.iter().map(|verify| verify(&self.arena));
        let all = bites.reduce(|all, one| Ok(all?.and(one?)));
        all.unwrap_or_else(|| Ok(Bite { bites: true, figures: "equals; both work".to_owned() }))
    }

    fn duel(&self, duel: &Path, local: bool) -> Launch {
        K::duel(&self.arena, &self.pair.load, duel, local)
    }
}
