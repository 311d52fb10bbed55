//! Sorts veneer leaves so that neighbours in a table top look alike.

/// A leaf of a flitch, as the camera over the press sees it.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// place in the log; leaves that lay side by side have neighbouring numbers
    pub number: u32,
    /// mean brightness, 0 to 255
    pub brightness: u8,
}

/// Leaves that differ by more than this look like two different trees.
pub const MAX_BRIGHTNESS_STEP: u8 = 18;

/// Leaves in the order of the log, cut into runs wherever the step is too large.
pub fn runs(mut leaves: Vec<Leaf>) -> Vec<Vec<Leaf>> {
    leaves.sort_by_key(|leaf| leaf.number);
    let mut found: Vec<Vec<Leaf>> = Vec::new();
    for leaf in leaves {
        match found.last_mut() {
            Some(run) if run[run.len() - 1].brightness.abs_diff(leaf.brightness) <= MAX_BRIGHTNESS_STEP => run.push(leaf),
            _ => found.push(vec![leaf]),
        }
    }
    found
}
