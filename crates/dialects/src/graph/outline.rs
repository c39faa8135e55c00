//! Outlines of steps. Each kind of step has its own, so that it is known without reading.

use super::Shape;

/// The corner, width and height of a step.
type Bounds = (f64, f64, f64, f64);

pub(super) fn outline(shape: Shape, class: &str, bounds: Bounds) -> String {
    let (x, y, width, height) = bounds;
    let (right, bottom, middle) = (x + width, y + height, y + height / 2.0);
    let path = |d: String| format!("<path class=\"{class}\" d=\"{d}\"/>");
    // Small ones are in the legend.
    let slant = |wanted: f64| wanted.min(width / 4.0);
    match shape {
        Shape::Work => rect(class, bounds, 6.0_f64.min(height / 6.0)),
        Shape::Pure => rect(class, bounds, 16.0_f64.min(height / 2.0)),
        Shape::Loop => {
            // A second one behind it.
            let back = format!(
                "<path class=\"{class}\" d=\"M{right:.1} {:.1}h4V{:.1}H{:.1}v-4\"/>",
                y + 5.0,
                bottom + 4.0,
                x + 5.0
            );
            format!("{back}\n{}", rect(class, bounds, 6.0_f64.min(height / 6.0)))
        }
        Shape::Child => {
            let inset = slant(7.0);
            let line = |at: f64| format!("<path class=\"e\" d=\"M{at:.1} {y:.1}v{height:.1}\"/>");
            format!("{}{}{}", rect(class, bounds, 2.0), line(x + inset), line(right - inset))
        }
        Shape::Gate => {
            let s = slant(8.0);
            path(format!(
                "M{:.1} {y:.1}H{:.1}L{right:.1} {:.1}V{:.1}L{:.1} {bottom:.1}H{:.1}L{x:.1} {:.1}V{:.1}z",
                x + s,
                right - s,
                y + s.min(height / 3.0),
                bottom - s.min(height / 3.0),
                right - s,
                x + s,
                bottom - s.min(height / 3.0),
                y + s.min(height / 3.0)
            ))
        }
        Shape::Join => {
            // A bar above it, at which branches wait.
            let bar = 4.0_f64.min(height / 5.0);
            let top = (x, y - bar / 2.0, width, bar);
            format!("{}\n{}", rect(class, bounds, 2.0), rect("d", top, bar / 2.0))
        }
        Shape::Choice => {
            let s = slant(18.0);
            path(format!(
                "M{:.1} {y:.1}H{:.1}L{right:.1} {middle:.1}L{:.1} {bottom:.1}H{:.1}L{x:.1} {middle:.1}z",
                x + s,
                right - s,
                right - s,
                x + s
            ))
        }
        Shape::Person => {
            let s = slant(12.0);
            path(format!("M{x:.1} {y:.1}H{right:.1}L{:.1} {bottom:.1}H{:.1}z", right - s, x + s))
        }
        Shape::Delay => {
            let s = slant(16.0);
            path(format!(
                "M{x:.1} {y:.1}H{:.1}C{:.1} {y:.1} {:.1} {bottom:.1} {:.1} {bottom:.1}H{x:.1}z",
                right - s,
                right + s / 3.0,
                right + s / 3.0,
                right - s
            ))
        }
        Shape::Trigger => {
            let s = slant(12.0);
            path(format!(
                "M{x:.1} {y:.1}H{:.1}L{right:.1} {middle:.1}L{:.1} {bottom:.1}H{x:.1}z",
                right - s,
                right - s
            ))
        }
        Shape::Model => {
            let s = slant(10.0);
            path(format!("M{:.1} {y:.1}H{right:.1}L{:.1} {bottom:.1}H{x:.1}z", x + s, right - s))
        }
        Shape::Data => {
            let lid = 5.0_f64.min(height / 4.0);
            let body = path(format!(
                "M{x:.1} {:.1}V{:.1}C{x:.1} {:.1} {right:.1} {:.1} {right:.1} {:.1}V{:.1}C{right:.1} {:.1} {x:.1} {:.1} {x:.1} {:.1}z",
                y + lid,
                bottom - lid,
                bottom + lid / 2.0,
                bottom + lid / 2.0,
                bottom - lid,
                y + lid,
                y - lid / 2.0,
                y - lid / 2.0,
                y + lid
            ));
            let rim = format!(
                "<path class=\"e\" d=\"M{x:.1} {:.1}C{x:.1} {:.1} {right:.1} {:.1} {right:.1} {:.1}\"/>",
                y + lid,
                y + lid * 2.5,
                y + lid * 2.5,
                y + lid
            );
            format!("{body}{rim}")
        }
    }
}

fn rect(class: &str, (x, y, width, height): Bounds, radius: f64) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"/>"
    )
}
