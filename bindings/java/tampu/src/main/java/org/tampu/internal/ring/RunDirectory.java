package org.tampu.internal.ring;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The directory where the processes of one user on one host meet. All programs make the same choice: {@code
 * TAMPU_RUN_DIR}, else {@code $XDG_RUNTIME_DIR/tampu}, else {@code /dev/shm/tampu-UID} if that is memory, else {@code
 * /tmp/tampu-UID}.
 */
public final class RunDirectory {
    /** Longest directory name of a domain. */
    private static final int CHUNK_LIMIT = 24;

    private RunDirectory() {}

    /** Returns the directory that this environment names. */
    public static Path choose(Map<String, String> environment) throws IOException {
        String named = environment.getOrDefault("TAMPU_RUN_DIR", "");
        if (!named.isEmpty()) {
            return Path.of(named);
        }
        String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
        if (!session.isEmpty()) {
            return Path.of(session, "tampu");
        }
        Path memory = Path.of("/dev/shm");
        boolean usable = Files.isDirectory(memory) && Files.isWritable(memory)
                && Files.getFileStore(memory).type().equals("tmpfs");
        return (usable ? memory : Path.of("/tmp")).resolve("tampu-" + user());
    }

    /** Returns the domain that this environment names: {@code TAMPU_DOMAIN}, else {@code local}. */
    public static String domain(Map<String, String> environment) {
        String named = environment.getOrDefault("TAMPU_DOMAIN", "");
        return named.isEmpty() ? "local" : named;
    }

    /** Returns the part of a domain. */
    public static Path of(Path run, String domain) {
        return run.resolve(chunk(domain));
    }

    /** Returns the directory of log rings of a domain, and makes it if it is missing. */
    static Path rings(Path run, String domain) throws IOException {
        makePrivate(run, true);
        check(run, Set.of(PosixFilePermission.GROUP_WRITE, PosixFilePermission.OTHERS_WRITE), "can be written by others");
        Path place = run.resolve(chunk(domain));
        makePrivate(place, false);
        check(place, PosixFilePermissions.fromString("---rwxrwx"), "can be entered by others");
        Path rings = place.resolve("rings");
        makePrivate(rings, false);
        return rings;
    }

    static void makePrivate(Path directory, boolean parents) throws IOException {
        var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
        if (parents) {
            Files.createDirectories(directory, mode);
            return;
        }
        try {
            Files.createDirectory(directory, mode);
        } catch (FileAlreadyExistsException exists) {
            // It is checked, or is inside a directory that was.
        }
    }

    private static void check(Path directory, Set<PosixFilePermission> forbidden, String what) throws IOException {
        // Links are not followed: in /tmp any user can create one.
        Map<String, Object> found = Files.readAttributes(directory, "unix:uid,permissions,isDirectory", LinkOption.NOFOLLOW_LINKS);
        String wrong = null;
        if (!(Boolean) found.get("isDirectory")) {
            wrong = "is not a directory";
        } else if (!found.get("uid").equals(user())) {
            wrong = "belongs to user " + found.get("uid");
        } else if (((Set<?>) found.get("permissions")).stream().anyMatch(forbidden::contains)) {
            wrong = what;
        }
        if (wrong != null) {
            throw new IOException("the run-time directory " + directory + " " + wrong + "; choose another with TAMPU_RUN_DIR");
        }
    }

    private static int user() throws IOException {
        return (Integer) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
    }

    /** Returns the domain's escaped name, or for a long one its beginning and a hash. */
    static String chunk(String domain) {
        StringBuilder key = new StringBuilder();
        for (byte each : domain.toLowerCase(Locale.ROOT).getBytes(StandardCharsets.UTF_8)) {
            if (each >= 'a' && each <= 'z' || each >= '0' && each <= '9') {
                key.append((char) each);
            } else {
                key.append(String.format("_%02x", each & 0xff));
            }
        }
        if (key.length() <= CHUNK_LIMIT) {
            return key.toString();
        }
        long hash = 0xcbf2_9ce4_8422_2325L;
        for (int at = 0; at < key.length(); at++) {
            hash = (hash ^ key.charAt(at)) * 0x0100_0000_01b3L;
        }
        return key.substring(0, 11) + String.format("-%012x", hash >>> 16);
    }
}
