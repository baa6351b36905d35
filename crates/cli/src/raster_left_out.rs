//! In the place of `raster`, in a build without the feature `png`.

use crate::outcome::Usage;

/// Never made.
pub(crate) enum Painter {}

impl Painter {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let text = "this duel was built without pictures (--png): build it with `--features png`, or \
                    write drawings with --svg";
        Err(Usage(text.into()).into())
    }

    pub(crate) fn png(&self, _: &str) -> anyhow::Result<Vec<u8>> {
        match *self {}
    }
}
