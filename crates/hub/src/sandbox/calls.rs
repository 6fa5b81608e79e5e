//! System calls that no role needs, denied by seccomp. They fail with EPERM, as for a user without rights.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

/// A mechanism that holds, in words for the log; or the name of one that this kernel lacks.
pub(super) type Held = Result<String, &'static str>;

/// Calls that run programs, look into other processes, change the system, or make ways around these rules.
const DENIED: &[i64] = &[
    // Programs.
    libc::SYS_execve,
    libc::SYS_execveat,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    // Namespaces.
    libc::SYS_setns,
    libc::SYS_unshare,
    // The kernel.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // A ring does system calls that no filter sees.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The host.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_personality,
];

/// Calls of one architecture only.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    // The numbers of execve, ptrace, process_vm_readv, process_vm_writev and execveat in the x32 table.
    X32 | 520,
    X32 | 521,
    X32 | 539,
    X32 | 540,
    X32 | 545,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[i64] = &[];

/// Bit of a call in the x32 table of a 64-bit x86 kernel, where the other numbers are the same.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
#[cfg(not(target_arch = "x86_64"))]
const X32: i64 = 0;

/// Denies the calls to this thread and all threads that it starts.
pub(super) fn deny() -> Result<Held, String> {
    const NAME: &str = "seccomp";
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(Err(NAME)) };
    let all = DENIED.iter().chain(DENIED_HERE).flat_map(|call| [*call, *call | X32]);
    let rules: BTreeMap<i64, Vec<_>> = all.map(|call| (call, Vec::new())).collect();
    let deny = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, deny, arch).map_err(|why| why.to_string())?;
    let program: BpfProgram = filter.try_into().map_err(|why: seccompiler::BackendError| why.to_string())?;
    match apply_filter(&program) {
        Ok(()) => Ok(Ok(format!("seccomp denies {} calls", DENIED.len()))),
        // The kernel was built without it, or a container's own filter forbids further ones.
        Err(_) if !is_in_kernel() => Ok(Err(NAME)),
        Err(why) => Err(why.to_string()),
    }
}

/// Returns true if this kernel has filters of system calls.
fn is_in_kernel() -> bool {
    std::path::Path::new("/proc/sys/kernel/seccomp/actions_avail").exists()
}
