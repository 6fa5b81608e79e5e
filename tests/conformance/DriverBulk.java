import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkHandler;
import org.tampu.bulk.BulkReceiver;
import org.tampu.bulk.BulkReport;
import org.tampu.bulk.BulkSender;
import org.tampu.bulk.SlowPolicy;
import org.tampu.gateway.Gateway;

/** Bulk data of the driver in Java: receivers that write each transfer to a file, and senders that send files in blocks. */
final class DriverBulk {
    /** The longest wait for receivers, and for one that is stopped. The runner waits longer. */
    private static final Duration WAIT = Duration.ofSeconds(50);
    private static final Duration RESUME = Duration.ofSeconds(10);

    /** A handler that writes each transfer to the file that its parameter names. */
    private static final class Into implements BulkHandler {
        private final String stream;
        private final Path directory;
        private String parameter;
        private FileChannel file;
        private long block;

        Into(String stream, Path directory) {
            this.stream = stream;
            this.directory = directory;
        }

        @Override
        public long start(Start start) throws IOException {
            parameter = new String(start.parameter(), StandardCharsets.UTF_8);
            file = FileChannel.open(directory.resolve(parameter), StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                    StandardOpenOption.TRUNCATE_EXISTING);
            block = 0;
            return 0;
        }

        @Override
        public void data(ByteBuffer bytes, long offset, boolean endOfBlock) throws IOException {
            long end = offset + bytes.remaining();
            while (bytes.hasRemaining()) {
                file.write(bytes);
            }
            if (endOfBlock) {
                Driver.say(Map.of("line", "block", "name", stream, "parameter", parameter, "offset", Long.toString(block), "length",
                        Long.toString(end - block)));
                block = end;
            }
        }

        @Override
        public void stop(End end) throws IOException {
            file.close();
            Driver.say(Map.of("line", "end", "name", stream, "parameter", parameter, "bytes", Long.toString(end.bytes()), "complete",
                    Boolean.toString(end.complete()), "stopped", Boolean.toString(end.stopped())));
        }
    }

    private final String domain = System.getenv("TAMPU_DOMAIN");
    private final String source;
    private final Gateway gateway;
    private final Map<String, BulkReceiver> receivers = new HashMap<>();
    private final Map<String, BulkSender> senders = new HashMap<>();

    DriverBulk(String source) throws Exception {
        this.source = source;
        gateway = Gateway.local(source);
    }

    /** Receives a stream into a directory. */
    void receive(Driver.Command command) throws Exception {
        String stream = command.get("name");
        BulkHandler into = new Into(stream, Path.of(command.get("directory")));
        BulkReceiver receiver = new BulkReceiver(domain, source, stream, Map.of("data", into)).resume(RESUME);
        Driver.say(Map.of("line", "receiver", "name", stream, "target", receiver.target().toString()));
        receivers.put(stream, receiver);
        receiver.announce(gateway);
    }

    /** Opens a sender that follows the receivers of its stream. */
    void open(Driver.Command command) throws Exception {
        BulkSender sender = BulkSender.builder(domain, source, command.get("name")).flow("data")
                .receivers(Integer.parseInt(command.get("receivers")), WAIT).rate(Double.parseDouble(command.get("rate")))
                .slow(SlowPolicy.cutAfter(WAIT)).ackWait(WAIT).resume(RESUME).open();
        senders.put(command.get("name"), sender);
        sender.follow(gateway);
    }

    /** Sends a file in blocks of these lengths. */
    void transfer(Driver.Command command) throws Exception {
        BulkSender sender = senders.get(command.get("name"));
        sender.start(command.get("parameter"));
        try (FileChannel file = FileChannel.open(Path.of(command.get("file")))) {
            long from = 0;
            for (String length : command.list("blocks")) {
                sender.send(file, from, Long.parseLong(length));
                from += Long.parseLong(length);
            }
        }
        BulkReport report = sender.stop();
        List<BulkDelivery> lacking = report.deliveries().stream().filter(each -> !each.isComplete()).toList();
        Driver.say(Map.of("line", "sent", "name", command.get("name"), "parameter", command.get("parameter"), "bytes",
                Long.toString(report.bytes()), "receivers", Integer.toString(report.deliveries().size()), "complete",
                Integer.toString(report.deliveries().size() - lacking.size()), "why",
                lacking.stream().map(String::valueOf).collect(Collectors.joining("; "))));
    }

    /** Closes the receiver or the sender of a stream. */
    void close(Driver.Command command) throws Exception {
        if (senders.containsKey(command.get("name"))) {
            senders.remove(command.get("name")).close();
        }
        if (receivers.containsKey(command.get("name"))) {
            receivers.remove(command.get("name")).close();
        }
    }
}
