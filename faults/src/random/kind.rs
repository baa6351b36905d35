//! What a kind of work says of how it is drawn. The room knows no more of it than that, and its name below.

use super::draw::{self, Draw};
use super::installed::Installed;
use super::stage;
use crate::case::{Case, Injection, Setup};
use crate::dice::Dice;
use crate::kinds::disk::Disk;
use crate::kinds::net::Net;
use crate::kinds::sql::Sql;
use crate::kinds::web::Web;
use crate::kinds::{Kind, Stage};
use crate::world::World;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::Path;

/// A kind of which set-ups and faults are drawn.
pub(crate) trait DrawnKind: Kind {
    /// Added to the seed: draws of one seed and number are no images of each other from kind to kind.
    const BESIDE_SEED: u64;
    /// What one of its ops is in the figures of a verification.
    const OP: &'static str;
    /// Puts two faults on one twin. A kind has none where the verifications of its faults tell that an op takes longer and not why: of two
    /// at once nobody would know that both bite.
    const MERGED: Option<Merged<Self>> = None;
    /// Faults that duel has names for.
    const CATALOGUE: &'static [&'static [Drawable<Self>]];
    /// Faults that it has none for: not to know is right.
    const OUTSIDE: &'static [Drawable<Self>];
    /// Differences that do no harm.
    const DECOYS: &'static [Decoy<Self>];

    /// What there is to draw from on this machine.
    fn installed() -> Installed;
    /// What both twins are before one of them gets its fault; `None` where nothing is installed to make them.
    fn set_up(dice: &mut Dice, installed: &Installed) -> Option<Setup<Self>>;
    /// Whether there can be such a twin.
    fn is_possible(_twin: &Self::Twin) -> bool {
        true
    }
    /// What an op takes under the draw's own load by another generator than duel, healthy and faulty, in any unit of time.
    fn op_takes(arena: &Self::Arena, load: &Self::Load) -> anyhow::Result<(f64, f64)>;
}

/// All faults of a kind that duel has names for.
#[cfg(test)]
pub(crate) fn catalogue<K: DrawnKind>() -> impl Iterator<Item = &'static Drawable<K>> {
    K::CATALOGUE.iter().copied().flatten()
}

/// A fault that can be drawn.
#[derive(Clone, Copy)]
pub(crate) struct Drawable<K: Kind = Web> {
    pub(crate) injection: Injection<K>,
    /// Programs and the like without which it cannot be had, as the kind's list of what is installed names them.
    pub(crate) needs: &'static [&'static str],
    /// Whether it can be put on this set-up.
    pub(crate) fits: fn(&Setup<K>) -> bool,
    /// Gives both twins what the fault is about.
    pub(crate) prepare: fn(Setup<K>, &mut Dice) -> Setup<K>,
    /// Puts it on the faulty twin; returns how strong, in one word.
    pub(crate) inject: Inject<K>,
    /// Further names that are as right on this set-up.
    pub(crate) called: fn(&Setup<K>) -> &'static [&'static str],
    /// Whether another load generator sees it as time per op. One that looks names up once sees nothing of names.
    pub(crate) seen_by_load: bool,
}

impl<K: Kind> Drawable<K> {
    pub(crate) const fn new(injection: Injection<K>, fits: fn(&Setup<K>) -> bool, inject: Inject<K>) -> Drawable<K> {
        Drawable { injection, needs: &[], fits, prepare: |setup, _| setup, inject, called: |_| &[], seen_by_load: true }
    }

    pub(crate) const fn after(self, prepare: fn(Setup<K>, &mut Dice) -> Setup<K>) -> Drawable<K> {
        Drawable { prepare, ..self }
    }

    pub(crate) const fn needing(self, needs: &'static [&'static str]) -> Drawable<K> {
        Drawable { needs, ..self }
    }

    pub(crate) const fn called(self, called: fn(&Setup<K>) -> &'static [&'static str]) -> Drawable<K> {
        Drawable { called, ..self }
    }

    pub(crate) const fn unseen_by_load(self) -> Drawable<K> {
        Drawable { seen_by_load: false, ..self }
    }

    /// A case of it alone, on a set-up that was prepared for it.
    pub(crate) fn case(&self, setup: &Setup<K>, dice: &mut Dice) -> Case {
        let mut faulty = setup.twin.clone();
        let strength = (self.inject)(&mut faulty, &setup.load, dice);
        let mut case = self.injection.case(setup, &strength, |twin| *twin = faulty);
        case.alternates.extend(self.further_names(setup));
        case
    }

    /// Further names of it on this set-up, each with its first one.
    pub(crate) fn further_names(&self, setup: &Setup<K>) -> impl Iterator<Item = (&'static str, &'static str)> {
        let cause = self.injection.cause;
        (self.called)(setup).iter().map(move |name| (cause, *name))
    }
}

/// A difference that does no harm, and that can be drawn.
#[derive(Clone, Copy)]
pub(crate) struct Decoy<K: Kind = Web> {
    pub(crate) fits: fn(&Setup<K>) -> bool,
    /// Makes one of the twins differ; returns in what, in one word.
    pub(crate) differ: Differ<K>,
}

// By names, or they could not be copied where twins cannot.
/// A twin with the changes of both, from the healthy one and the two; `None` where they do not go together.
pub(crate) type Merged<K> = fn(&<K as Kind>::Twin, &<K as Kind>::Twin, &<K as Kind>::Twin) -> Option<<K as Kind>::Twin>;
type Inject<K> = fn(&mut <K as Kind>::Twin, &<K as Kind>::Load, &mut Dice) -> String;
type Differ<K> = fn(&mut <K as Kind>::Twin, &mut Dice) -> String;

/// A text that was drawn, for twins whose words are those of the program: a draw makes a few short ones, and it runs no longer than
/// its draws.
pub(crate) fn kept(text: String) -> &'static str {
    text.leak()
}

/// A kind under its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered {
    pub(super) name: &'static str,
    pub(super) installed: fn() -> Installed,
    pub(super) draw: fn(u64, u32, &Installed) -> anyhow::Result<Draw>,
    pub(super) start: fn(&World, &Draw, &Path) -> anyhow::Result<Box<dyn Stage>>,
}

/// All of them. The first is drawn where none is asked for.
pub(super) const ALL: [Registered; 4] =
    [Registered::of::<Web>(), Registered::of::<Sql>(), Registered::of::<Net>(), Registered::of::<Disk>()];

impl Registered {
    const fn of<K: DrawnKind>() -> Registered {
        Registered { name: K::NAME, installed: K::installed, draw: draw::draw::<K>, start: stage::start::<K> }
    }

    pub(super) fn called(name: &str) -> Option<Registered> {
        ALL.into_iter().find(|kind| kind.name == name)
    }

    /// Reads one from the command line.
    pub(super) fn parser() -> impl TypedValueParser<Value = Registered> {
        PossibleValuesParser::new(ALL.map(|kind| kind.name))
            .try_map(|name| Registered::called(&name).ok_or("there is no such kind"))
    }
}
