import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Path;
import java.time.Duration;
import org.tampu.bulk.BulkDelivery;
import org.tampu.bulk.BulkException;
import org.tampu.bulk.BulkReport;
import org.tampu.bulk.BulkSender;
import org.tampu.bulk.SlowPolicy;
import org.tampu.gateway.Gateway;

/** Sends files of a stream: BulkSend DOMAIN STREAM RECEIVERS RATE [PATIENCE in seconds]. A line of standard input names a file and its name there. */
public class BulkSend {
    private static void say(String text) {
        System.out.println(text);
        System.out.flush();
    }

    public static void main(String[] arguments) throws Exception {
        // Between hosts a network may be cut.
        boolean far = arguments.length > 4;
        Duration patience = Duration.ofSeconds(far ? Long.parseLong(arguments[4]) : 1);
        SlowPolicy slow = SlowPolicy.cutAfter(far ? patience : Duration.ofSeconds(5));
        Duration ackWait = far ? patience : Duration.ofSeconds(10);
        try (Gateway gateway = Gateway.local("java/sender");
                BulkSender sender = BulkSender.builder(arguments[0], "java/sender", arguments[1]).checksum(true)
                        .receivers(Integer.parseInt(arguments[2]), Duration.ofSeconds(30)).rate(Double.parseDouble(arguments[3]))
                        .resume(patience).slow(slow).ackWait(ackWait).open()) {
            sender.follow(gateway);
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                try {
                    BulkReport report = sender.sendFile(Path.of(words[0]), words[1], "uid://A/X1", false);
                    say("sent bytes=" + report.bytes() + " complete=" + report.isComplete());
                    for (BulkDelivery each : report.deliveries()) {
                        say("to " + each.source() + ": " + each.outcome() + " cut=" + each.cut() + " " + each.why());
                    }
                } catch (BulkException failed) {
                    say("failed " + failed.kind() + ": " + failed.getMessage());
                }
            }
        }
    }
}
