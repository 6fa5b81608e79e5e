package org.tampu.internal.ring;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;

/**
 * The directory of one incarnation's log rings ({@code spec/log-ring.md}).
 *
 * <p>Java cannot {@code flock}, so the life of this process shows by a record lock on {@code source} and by a mapped
 * ring. The lock ends with any close of that file in this process, so the file is opened once and stays open. The
 * first ring is mapped before {@code source} gets its name, so a reader never finds a life without both.
 */
final class RingFiles {
    private static final String HIDDEN = ".new";

    final Incarnation incarnation;
    final Path directory;
    final Dictionary dictionary;
    /** Ring 0, mapped and not named yet. */
    private Ring first;
    private final int ringBytes;
    /** Held as long as this process lives; never closed. */
    private final RandomAccessFile source;
    private final FileLock life;
    private int nextRing;

    RingFiles(Path rings, String domain, String name, String process, String host, int ringBytes) throws IOException {
        this.incarnation = Incarnation.create();
        this.ringBytes = ringBytes;
        this.directory = rings.resolve(incarnation.toString());
        RunDirectory.makePrivate(directory, false);
        create("lease").close();
        publish("lease");
        try (RandomAccessFile clock = create("clock")) {
            clock.write(clockPage());
        }
        publish("clock");
        RandomAccessFile file = create("dictionary");
        dictionary = new Dictionary(file, incarnation);
        publish("dictionary");
        first = make();
        source = create("source");
        String text = "tampu-rings 1\ndomain " + domain + "\nsource " + name + "\nprocess " + line(process) + "\nhost " + line(host)
                + "\nincarnation " + incarnation + "\ndrainer none\nend\n";
        source.write(text.getBytes(StandardCharsets.UTF_8));
        life = uninterrupted(() -> source.getChannel().tryLock());
        if (life == null) {
            throw new IOException(directory.resolve("source") + " is locked by another process");
        }
        publish("source");
    }

    private static String line(String text) {
        return text.replaceAll("\\p{Cntrl}", " ");
    }

    /** Makes a ring for a thread and gives it its name. */
    synchronized Ring ring() throws IOException {
        Ring ring = first != null ? first : make();
        first = null;
        publish("ring-" + ring.number);
        return ring;
    }

    private Ring make() throws IOException {
        for (int attempt = 0; ; attempt++) {
            try {
                return attempt();
            } catch (ClosedByInterruptException interrupted) {
                // The numbers of rings may have gaps, and the file without its name goes with the directory.
                if (attempt == 2) {
                    throw interrupted;
                }
            }
        }
    }

    private Ring attempt() throws IOException {
        int number = nextRing++;
        String name = "ring-" + number;
        RandomAccessFile file = create(name);
        long length = (long) Ring.HEADER_LENGTH + ringBytes;
        file.setLength(length);
        file.write(Ring.header(number, ringBytes, incarnation));
        return new Ring(number, ringBytes, file, uninterrupted(() -> file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, length)));
    }

    /** Writes a payload that is too long for a ring into a file of its own. */
    void writeLong(int ring, long position, byte[] bytes, int from, int length) throws IOException {
        String name = "long-" + ring + "-" + position;
        try (RandomAccessFile file = create(name)) {
            file.write(bytes, from, length);
        } catch (IOException full) {
            Files.deleteIfExists(directory.resolve(name + HIDDEN));
            throw full;
        }
        publish(name);
    }

    /** Returns the bytes of long payloads that nobody has handed off yet. */
    long longBytes() {
        long sum = 0;
        try (var names = Files.newDirectoryStream(directory, "long-*")) {
            for (Path each : names) {
                sum += each.toFile().length();
            }
        } catch (IOException | RuntimeException gone) {
            return sum;
        }
        return sum;
    }

    /** States that this process ends in order: the recovery of its rings reports no death. */
    void ended() {
        try {
            Files.createFile(directory.resolve("ended"), PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        } catch (IOException gone) {
            // Without the file the end is reported as a death, and nothing is lost.
        }
    }

    private RandomAccessFile create(String name) throws IOException {
        Path hidden = directory.resolve(name + HIDDEN);
        Files.createFile(hidden, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        return new RandomAccessFile(hidden.toFile(), "rw");
    }

    private void publish(String name) throws IOException {
        Files.move(directory.resolve(name + HIDDEN), directory.resolve(name), StandardCopyOption.ATOMIC_MOVE);
    }

    private static byte[] clockPage() {
        ByteBuffer page = ByteBuffer.allocate(4096).order(ByteOrder.nativeOrder());
        page.put("TAMPULCK".getBytes(StandardCharsets.US_ASCII)).putInt(0x01020304).putShort((short) 1).putShort((short) 0);
        long now = Clock.utc();
        // Ticks are ns of UTC. One anchor, for readers that expect some.
        page.putInt(2).putInt(0).putLong(1);
        page.position(64);
        page.putLong(now).putLong(now).putLong(System.nanoTime());
        return page.array();
    }

    private interface Work<T> {
        T run() throws IOException;
    }

    /** Uses a channel, which a pending interrupt of this thread would close. The interrupt is put back afterwards. */
    private static <T> T uninterrupted(Work<T> work) throws IOException {
        boolean pending = Thread.interrupted();
        try {
            return work.run();
        } catch (ClosedByInterruptException interrupted) {
            pending = true;
            throw interrupted;
        } finally {
            if (pending) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
