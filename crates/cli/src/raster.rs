//! Charts as pictures made of points.

use anyhow::Context;
use resvg::{tiny_skia, usvg};

/// Points for each unit of a drawing: sharp on screens of today, and on paper.
const SCALE: f32 = 2.0;
/// Fonts that have all that charts show, the likeliest first.
const FONTS: [&str; 5] = ["DejaVu Sans", "Noto Sans", "Liberation Sans", "Arial", "Helvetica"];

/// Makes pictures, with the system's fonts.
pub(crate) struct Painter {
    options: usvg::Options<'static>,
}

impl Painter {
    /// An error where the system has no font.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut options = usvg::Options::default();
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        let has = |family: &str| fonts.faces().any(|face| face.families.iter().any(|(name, _)| name == family));
        let any = || fonts.faces().next().and_then(|face| face.families.first()).map(|(name, _)| name.clone());
        let family = FONTS.iter().find(|family| has(family)).map(|family| (*family).to_owned()).or_else(any);
        let family = family.context(
            "no font is installed here, and a picture without texts would tell nothing; install one (fonts-dejavu-core or the \
             like), or write drawings with --svg",
        )?;
        fonts.set_sans_serif_family(family);
        Ok(Self { options })
    }

    /// A drawing as PNG, in light colours.
    pub(crate) fn png(&self, svg: &str) -> anyhow::Result<Vec<u8>> {
        let tree = usvg::Tree::from_str(svg, &self.options).context("cannot read a chart back")?;
        let size = tree.size().to_int_size().scale_by(SCALE).context("a chart has no size")?;
        let mut picture = tiny_skia::Pixmap::new(size.width(), size.height()).context("a chart is too large")?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut picture.as_mut());
        picture.encode_png().context("cannot write a PNG file")
    }
}
