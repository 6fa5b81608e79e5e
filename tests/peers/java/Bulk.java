import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Map;
import org.tampu.bulk.BulkHandler;
import org.tampu.bulk.BulkReceiver;
import org.tampu.bulk.GiveUp;
import org.tampu.bulk.LostRange;
import org.tampu.gateway.Gateway;

/** Receives a stream: Bulk DOMAIN STREAM FILE [ADDRESS]. Says each start and end in a line. A parameter with "refuse" is refused. */
public class Bulk {
    private static final class Save implements BulkHandler {
        private final Path path;
        private FileChannel file;

        Save(Path path) {
            this.path = path;
        }

        private static void say(String text) {
            System.out.println(text);
            System.out.flush();
        }

        @Override
        public long start(Start start) throws IOException {
            file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.TRUNCATE_EXISTING);
            String parameter = new String(start.parameter(), StandardCharsets.UTF_8);
            say("start " + start.transfer() + " of " + start.source() + ": " + parameter);
            refuses = parameter.contains("refuse");
            return 0;
        }

        private boolean refuses;

        @Override
        public void data(ByteBuffer bytes, long offset, boolean endOfBlock) throws IOException, GiveUp {
            if (refuses) {
                throw new GiveUp("the disk of Java is full");
            }
            for (long at = offset; bytes.hasRemaining(); ) {
                at += file.write(bytes, at);
            }
        }

        @Override
        public void lost(LostRange range) {
            say("lost " + range);
        }

        @Override
        public void stop(End end) throws IOException {
            file.close();
            say("end complete=" + end.complete() + " stopped=" + end.stopped() + " bytes=" + end.bytes() + " causes="
                    + end.lost().stream().map(LostRange::cause).toList());
        }
    }

    public static void main(String[] arguments) throws Exception {
        InetAddress listen = arguments.length > 3 ? InetAddress.getByName(arguments[3]) : InetAddress.getLoopbackAddress();
        // Between hosts a network may be cut.
        Duration resume = arguments.length > 3 ? Duration.ofSeconds(60) : Duration.ofMillis(500);
        try (Gateway gateway = Gateway.local("java/receiver");
                BulkReceiver receiver = new BulkReceiver(arguments[0], "java/receiver", arguments[1],
                        Map.of("data", new Save(Path.of(arguments[2]))), new InetSocketAddress(listen, 0), null).resume(resume)) {
            receiver.announce(gateway);
            Save.say("ready at " + receiver.target().address());
            while (System.in.read() >= 0) {
                // Until the end of standard input.
            }
        }
    }
}
