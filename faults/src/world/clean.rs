//! `faults clean`: unmakes what processes have left that are dead.

use super::journal;

/// Unmakes everything in the journals of dead owners, and says so line by line. What living owners have made stays.
///
/// # Errors
///
/// Where something could not be unmade; the rest is unmade nevertheless, and the journal stays for the next time.
pub(crate) fn clean() -> anyhow::Result<()> {
    let mut failed = 0;
    let mut unmade = 0;
    for orphan in journal::orphans(&journal::folder())? {
        // Processes hold on to groups and mounts, so all of them end first.
        for made in &orphan.left {
            if let Err(error) = made.end_processes() {
                println!("processes of {made}: {error:#}");
            }
        }
        let mut left = 0;
        for made in &orphan.left {
            match made.unmake() {
                Ok(()) => println!("unmade {made}"),
                Err(error) => {
                    println!("left   {made}: {error:#}");
                    left += 1;
                }
            }
        }
        unmade += orphan.left.len() - left;
        failed += left;
        if left == 0 {
            std::fs::remove_file(&orphan.path)?;
        }
    }
    println!("{unmade} unmade, {failed} left");
    anyhow::ensure!(failed == 0, "something is left");
    Ok(())
}
