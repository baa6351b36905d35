//! The kinds of work that twins do: a folder for each says what a twin of it is, how two of them are started, how it is
//! seen without duel that they do their work, and how duel is pointed at them.
//!
//! A further kind is a folder with an implementation of [`Kind`].

pub(crate) mod disk;
pub(crate) mod net;
pub(crate) mod sql;
pub(crate) mod web;

use crate::case::Bite;
use crate::servers::Place;
use crate::world::{Launch, World};
use std::any::Any;
use std::path::Path;

/// A kind of work.
pub(crate) trait Kind: Copy + 'static {
    /// As ids and results have it.
    const NAME: &'static str;
    /// What is loaded, before it exists. The faulty one is a clone, to which the fault is done.
    type Twin: Clone + PartialEq + 'static;
    /// What duel is told to do with both.
    type Load: Clone + 'static;
    /// Both, running, with a place for the client beside them.
    type Arena: 'static;

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
pub(crate) struct Trial(Box<dyn AnyPair>);

impl Clone for Trial {
    fn clone(&self) -> Trial {
        self.0.cloned()
    }
}

impl Trial {
    /// The names of all kinds.
    #[cfg(test)]
    pub(crate) const KINDS: &[&str] = &[web::Web::NAME, net::Net::NAME, disk::Disk::NAME, sql::Sql::NAME];

    pub(crate) fn of<K: Kind>(pair: Pair<K>) -> Trial {
        Trial(Box::new(pair))
    }

    /// The pair; `None` where it is one of another kind.
    pub(crate) fn pair<K: Kind>(&self) -> Option<&Pair<K>> {
        self.0.as_any().downcast_ref()
    }

    /// The same, to be changed.
    pub(crate) fn pair_mut<K: Kind>(&mut self) -> Option<&mut Pair<K>> {
        self.0.as_any_mut().downcast_mut()
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// Starts both, and returns what can be done with them. `duel` is the program, also where it is no part of the client.
    pub(crate) fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage>> {
        self.0.start(world, faulty, duel)
    }

    /// Whether the twins differ at all, and how many faults are verified.
    #[cfg(test)]
    pub(crate) fn differ_and_verify(&self) -> (bool, usize) {
        self.0.differ_and_verify()
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
trait AnyPair: Any {
    fn kind(&self) -> &'static str;
    fn cloned(&self) -> Trial;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
    fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage>>;
    #[cfg(test)]
    fn differ_and_verify(&self) -> (bool, usize);
}

impl<K: Kind> AnyPair for Pair<K> {
    fn kind(&self) -> &'static str {
        K::NAME
    }

    fn cloned(&self) -> Trial {
        Trial::of(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn start(&self, world: &World, faulty: Place, duel: &Path) -> anyhow::Result<Box<dyn Stage>> {
        Ok(Box::new(Started::new(world, self, faulty, duel)?))
    }

    #[cfg(test)]
    fn differ_and_verify(&self) -> (bool, usize) {
        (self.healthy != self.faulty, self.verify.len())
    }
}

/// Twins of one kind that run.
pub(crate) struct Started<K: Kind> {
    pub(crate) arena: K::Arena,
    pub(crate) pair: Pair<K>,
}

impl<K: Kind> Started<K> {
    pub(crate) fn new(world: &World, pair: &Pair<K>, faulty: Place, duel: &Path) -> anyhow::Result<Started<K>> {
        Ok(Started { arena: K::start(world, pair, faulty, duel)?, pair: pair.clone() })
    }
}

impl<K: Kind> Stage for Started<K> {
    fn verify(&self) -> anyhow::Result<Bite> {
        K::ensure_both_work(&self.arena)?;
        let both_work = Bite { bites: true, figures: "both work".to_owned() };
        self.pair.verify.iter().try_fold(both_work, |all, verify| Ok(all.and(verify(&self.arena)?)))
    }

    fn duel(&self, duel: &Path, local: bool) -> Launch {
        K::duel(&self.arena, &self.pair.load, duel, local)
    }
}
