package org.tampu.internal.ring;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;

/** One life of a process: boot of the kernel, process number, start in ns of UTC ({@code spec/decisions/0001-identity.md}). */
public record Incarnation(int boot, int pid, long start) {
    /** The last start that was given out: starts are unique within a process. */
    private static final AtomicLong LAST = new AtomicLong();
    /** Bits of a start that are those of the process's start in ticks since the boot, which no step of the clock moves. */
    private static final long MARK = (1L << 20) - 1;

    /** Returns UTC in ns since 1970. */
    public static long utc() {
        return Clock.utc();
    }

    /** Returns a new incarnation of this process. */
    public static Incarnation create() throws IOException {
        String boot = Files.readString(Path.of("/proc/sys/kernel/random/boot_id"));
        long now = Clock.utc();
        String stat = Files.readString(Path.of("/proc/self/stat"));
        // The name in parentheses may contain any character. Behind it, the start is the 20th field.
        String[] fields = stat.substring(stat.lastIndexOf(')') + 1).trim().split(" +");
        long mark = Long.parseLong(fields[19]) & MARK;
        long start = LAST.updateAndGet(last -> Math.max(last + MARK + 1, now) & ~MARK | mark);
        return new Incarnation(Integer.parseUnsignedInt(boot.substring(0, 8), 16), (int) ProcessHandle.current().pid(), start);
    }

    /** Returns the 16 bytes of the spec. */
    public byte[] toBytes() {
        return ByteBuffer.allocate(16).order(ByteOrder.LITTLE_ENDIAN).putInt(boot).putInt(pid).putLong(start).array();
    }

    @Override
    public String toString() {
        return String.format("%08x-%08x-%016x", boot, pid, start);
    }
}
