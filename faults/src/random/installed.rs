//! What there is to draw from: a draw depends on it, so it is written down with each. What is looked for, each kind says itself.

/// Names of what is installed, in alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed(Vec<String>);

impl Installed {
    pub(crate) fn of(mut names: Vec<String>) -> Installed {
        names.sort();
        names.dedup();
        Installed(names)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn has_all(&self, needs: &[&str]) -> bool {
        needs.iter().all(|need| self.0.iter().any(|name| name == need))
    }
}
