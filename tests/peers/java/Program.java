import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.net.URI;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.tampu.book.BookException;
import org.tampu.book.Logbook;
import org.tampu.log.Level;
import org.tampu.log.LogSettings;
import org.tampu.log.Logger;

/** Processes of {@code java_log.py}, by their first argument; the second is the source. */
public final class Program {
    private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    public static void main(String[] arguments) throws Exception {
        LogSettings settings = LogSettings.fromEnvironment(arguments[1]);
        Logger logger = Logger.open(arguments[0].equals("fill") ? settings.withRingBytes(16 << 10) : settings);
        switch (arguments[0]) {
            case "calls" -> calls(logger, arguments[2], Integer.parseInt(arguments[3]));
            case "some" -> some(logger, Integer.parseInt(arguments[2]), arguments[3]);
            case "book" -> book(URI.create(arguments[2]), Path.of(arguments[3]), arguments[4]);
            case "fill" -> fill(logger, Integer.parseInt(arguments[2]));
            case "threads" -> threads(logger, Integer.parseInt(arguments[2]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /** Posts, changes, attaches, finds and refuses, as a client of the logbook. */
    private static void book(URI hub, Path file, String token) throws Exception {
        Logbook books = new Logbook(hub, token);
        Logbook.Entry entry = books.post("Shift log", Map.of("Author", "Zoe", "Type", "Problem", "System", "Antennas", "Subject", "LO1"),
                "**DV05** lost its lock: \u00e9\n");
        Logbook.Entry reply = books.post("Shift log", Map.of("Author", "Max", "Type", "Problem", "System", "Antennas", "Subject", "LO1"),
                "again", Map.of("parent", entry.id()));
        Logbook.Entry attached = books.attach(entry, file);
        Path copy = file.resolveSibling("copy");
        books.fetch("Shift log", entry.id(), 0, copy);
        System.out.println(Files.mismatch(file, copy) + " " + books.thread("Shift log", entry.id()).size() + " "
                + books.search("lock type:Problem", 10).size() + " " + books.read("Shift log", reply.id()).get("text"));
        try {
            books.edit(entry, Map.of("Author", "Zoe"), "an edit of what has changed since");
        } catch (BookException expected) {
            System.out.println(expected.status() + " " + (attached.revision() > entry.revision()));
        }
    }

    /** Threads log numbered calls for ever, and store in a file how many have returned. */
    private static void calls(Logger logger, String file, int threads) throws Exception {
        MappedByteBuffer returned;
        try (RandomAccessFile opened = new RandomAccessFile(file, "rw")) {
            opened.setLength(8L * threads);
            returned = opened.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 8L * threads);
        }
        for (int each = 0; each < threads; each++) {
            int thread = each;
            new Thread(() -> {
                for (long call = 0; ; call++) {
                    switch ((int) (call % 7)) {
                        case 1 -> logger.info("call " + thread + " " + call);
                        case 3 -> logger.at(Level.DEBUG).data("number", call).log("call {} {}", thread, call);
                        case 5 -> logger.warning("call {} {}", thread, call);
                        default -> logger.info("call {} {}", thread, call);
                    }
                    WORD.setRelease(returned, 8 * thread, call + 1);
                    if (call % 4 == 0) {
                        LockSupport.parkNanos(1_000_000);
                    }
                }
            }, "caller-" + thread).start();
        }
    }

    /** Logs a few calls and ends: in order, or at once without the end of a program. */
    private static void some(Logger logger, int calls, String end) {
        for (int call = 0; call < calls; call++) {
            logger.info("call {} {}", 0, call);
        }
        if (end.equals("halt")) {
            Runtime.getRuntime().halt(0);
        }
        if (end.equals("flush")) {
            System.out.println("flushed " + logger.flush(Duration.ofSeconds(60)));
        }
    }

    /** Logs more than a ring holds while nobody reads it. */
    private static void fill(Logger logger, int calls) {
        for (int call = 0; call < calls; call++) {
            logger.log(call % 10 == 0 ? Level.DEBUG : Level.INFO, "call {} {}", 0, call);
        }
        System.out.println("lost " + logger.lost());
    }

    /** Many threads, one after the other and then at once, log one call each. */
    private static void threads(Logger logger, int threads) throws Exception {
        for (int each = 0; each < threads; each++) {
            int call = each;
            Thread thread = new Thread(() -> logger.info("call {} {}", 0, call), "one-" + each);
            thread.start();
            thread.join();
        }
        Thread[] all = new Thread[threads];
        for (int each = 0; each < threads; each++) {
            int call = threads + each;
            all[each] = new Thread(() -> {
                logger.info("call {} {}", 0, call);
                LockSupport.parkNanos(200_000_000);
            }, "all-" + each);
            all[each].start();
        }
        for (Thread thread : all) {
            thread.join();
        }
        System.out.println("flushed " + logger.flush(Duration.ofSeconds(60)) + " lost " + logger.lost());
    }
}
