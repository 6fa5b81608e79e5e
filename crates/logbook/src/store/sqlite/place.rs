//! The file system of a directory: a database in it needs a local one.
//!
//! SQLite's write-ahead log is shared memory, and its locks are those of one kernel. On a network file system a second
//! host would not see them, and the database would be damaged without a word. Rejected: another journal mode there, because a search
//! would then wait for each post, and locks over NFS are not reliable either.

use std::path::Path;

/// Returns the reason for which a database is not opened on such a file system, and the ways out.
pub fn refusal(kind: &str) -> String {
    format!(
        "it is on {kind}, where processes do not surely share memory and locks, which SQLite's write-ahead log needs; \
         name a directory of a local disk ([book] dir), or use a PostgreSQL database ([book] postgres); \
         backups and exports may go to where this is"
    )
}

/// Returns the kind of file system of a directory if other hosts may share it. For a directory that is missing, that of
/// the nearest one above it counts.
pub fn network_file_system(dir: &Path) -> Option<&'static str> {
    let nearest = dir.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    let nearest = if nearest.as_os_str().is_empty() { Path::new(".") } else { nearest };
    rustix::fs::statfs(nearest).ok().and_then(|found| network_kind(found.f_type as u64 & 0xffff_ffff))
}

/// Names file systems by the numbers of statfs(2). A FUSE file system may be local or remote, which cannot be distinguished.
fn network_kind(number: u64) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x0bd0_0bd0 => "Lustre",
        0x00c3_6400 => "Ceph",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x0102_1997 => "9P",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x2003_0528 => "OrangeFS",
        0xaad7_aaea => "PanFS",
        0x0131_11a8 => "IBRIX",
        0xbeef_dead => "StorNext",
        0x6163_6673 => "ACFS, which hosts share",
        0x0116_1970 => "GFS2, which hosts share",
        0x7461_636f => "OCFS2, which hosts share",
        0x786f_4256 => "VirtualBox's shared folders",
        0xbacb_acbc => "VMware's shared folders",
        0x7c7c_6673 => "Parallels' shared folders",
        0x6573_5546 => "FUSE, a file system that a program serves",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        for (number, kind) in [
            (0x6969, "NFS"),
            (0xff53_4d42, "CIFS"),
            (0xfe53_4d42, "SMB2"),
            (0x0102_1997, "9P"),
            (0x6573_5546, "FUSE"),
            (0x0bd0_0bd0, "Lustre"),
        ] {
            assert!(network_kind(number).is_some_and(|known| known.starts_with(kind)), "{kind}");
        }
        for (number, local) in
            [(0xef53, "ext4"), (0x5846_5342, "XFS"), (0x9123_683e, "btrfs"), (0x0102_1994, "tmpfs"), (0x794c_7630, "overlay")]
        {
            assert_eq!(network_kind(number), None, "{local}");
        }
    }

    #[test]
    fn the_nearest_directory_counts() {
        for path in ["/proc", "/proc/none/of/these", "none-of-these/book", "/"] {
            assert_eq!(network_file_system(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_refusal_names_the_ways_out() {
        let text = refusal("NFS");
        assert!(["NFS", "[book] dir", "[book] postgres"].into_iter().all(|word| text.contains(word)), "{text}");
    }
}
