package org.tampu.bulk;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.bulk.FlowControl;
import org.tampu.internal.bulk.FollowedReceivers;
import org.tampu.internal.bulk.Life;
import org.tampu.internal.bulk.SendFlow;
import org.tampu.internal.bulk.SendSettings;
import org.tampu.internal.bulk.TransferReports;
import org.tampu.internal.json.Json;
import org.tampu.internal.ring.RunDirectory;

/**
 * The sending side of a flow. It connects to receivers, which get each transfer in order. One call runs at a time.
 *
 * <pre>{@code
 * try (var sender = BulkSender.builder("alma", "correlator", "spectra").open()) {
 *     sender.follow(gateway);
 *     sender.start("uid://A002/X1");
 *     sender.send(block);
 *     sender.stop().check();
 * }
 * }</pre>
 *
 * <p>A block is copied once, into a window of bounded size, from which each receiver is served. A full window makes the
 * caller wait.
 */
public final class BulkSender implements AutoCloseable {
    private final SendFlow flow;
    private final SendSettings settings;
    private final List<FollowedReceivers> followed = new ArrayList<>();
    /** Reports of its transfers on the bus, or null. */
    private TransferReports reports;

    private BulkSender(SendSettings settings) throws IOException {
        this.settings = settings;
        flow = new SendFlow(settings, Life.create());
    }

    /** Returns a builder for the domain of {@code TAMPU_DOMAIN}, else {@code local}. */
    public static Builder builder(String source, String stream) {
        return builder(RunDirectory.domain(System.getenv()), source, stream);
    }

    /** Returns a builder; {@code source} is the stable name of the sender. */
    public static Builder builder(String domain, String source, String stream) {
        return new Builder(domain, source, stream);
    }

    /** The settings of a sender. */
    public static final class Builder {
        private final String domain;
        private final String source;
        private final String stream;
        private String flow = "data";
        private int frame = 256 << 10;
        private int window = 8 << 20;
        private boolean checked;
        private Protection protection = Protection.AUTO;
        private SlowPolicy slow = SlowPolicy.cutAfter(Duration.ofSeconds(5));
        private Duration ackWait = Duration.ofSeconds(10);
        private Duration resume = Duration.ofSeconds(30);
        private double rate;
        private int receivers = 1;
        private Duration connectWait = Duration.ofSeconds(5);

        private Builder(String domain, String source, String stream) {
            this.domain = Objects.requireNonNull(domain, "domain");
            this.source = Objects.requireNonNull(source, "source");
            this.stream = named("stream", stream);
        }

        private static String named(String what, String name) {
            int length = name.getBytes(StandardCharsets.UTF_8).length;
            if (length == 0 || length > 200 || name.chars().anyMatch(each -> Character.isISOControl(each) || each == '#')) {
                throw new IllegalArgumentException("invalid name '" + name + "' of a " + what
                        + ": give 1 to 200 bytes without control characters and '#'");
            }
            return name;
        }

        private static int within(String what, int value, int least, int most) {
            if (value < least || value > most) {
                throw new IllegalArgumentException(what + " of " + value + ": give " + least + " to " + most);
            }
            return value;
        }

        private static Duration positive(String what, Duration time) {
            if (time.isNegative()) {
                throw new IllegalArgumentException(what + " of " + time + ": give a time that is not negative");
            }
            return time;
        }

        /** Sets the name of the flow, by default {@code data}. */
        public Builder flow(String name) {
            flow = named("flow", name);
            return this;
        }

        /** Sets the longest piece of a block that is sent at once, in bytes; 256 KiB by default. */
        public Builder frame(int bytes) {
            frame = within("a frame", bytes, 1, 16 << 20);
            return this;
        }

        /** Sets the number of bytes that may be sent and not acknowledged, which is the memory of the sender; 8 MiB by default. */
        public Builder window(int bytes) {
            window = within("a window", bytes, 1, 1 << 30);
            return this;
        }

        /** Sets whether the data gets checksums. A receiver may demand them, too. */
        public Builder checksum(boolean on) {
            checked = on;
            return this;
        }

        /** Sets the least protection of each connection; a receiver may demand more. {@link Protection#AUTO} by default. */
        public Builder protection(Protection least) {
            protection = Objects.requireNonNull(least, "protection");
            return this;
        }

        /** Sets the treatment of slow receivers; {@code cutAfter} 5 s by default. */
        public Builder slow(SlowPolicy policy) {
            slow = Objects.requireNonNull(policy, "policy");
            return this;
        }

        /** Sets the longest wait of a start or a stop for a receiver without progress; 10 s by default. */
        public Builder ackWait(Duration time) {
            ackWait = positive("a wait", time);
            return this;
        }

        /** Sets the time for which data is kept for a receiver with a broken connection; 30 s by default. */
        public Builder resume(Duration time) {
            resume = positive("a time to resume", time);
            return this;
        }

        /** Sets a limit in bytes a second; 0 for none. */
        public Builder rate(double bytesPerSecond) {
            if (!(bytesPerSecond >= 0) || Double.isInfinite(bytesPerSecond)) {
                throw new IllegalArgumentException("a rate of " + bytesPerSecond + ": give bytes a second, or 0");
            }
            rate = bytesPerSecond;
            return this;
        }

        /** Sets the number of receivers that a start needs, and the longest wait for them; 1 and 5 s by default. */
        public Builder receivers(int count, Duration wait) {
            receivers = within("a number of receivers", count, 0, Integer.MAX_VALUE);
            connectWait = positive("a wait", wait);
            return this;
        }

        /** Opens the sender, which has no receivers at first. */
        public BulkSender open() throws IOException {
            return new BulkSender(new SendSettings(domain, source, stream, flow, Math.min(frame, window), window, checked, protection, slow,
                    ackWait.toNanos(), resume.toNanos(), rate, receivers, connectWait.toNanos()));
        }
    }

    /** Returns the control of its flow, for an offer. */
    FlowControl control() {
        return new FlowControl(flow);
    }

    /** Adds a receiver whose address is known. The sender connects, and reconnects after a broken connection. */
    public void connect(BulkTarget target) {
        flow.add(target.toString(), target, Protection.AUTO);
    }

    /**
     * Adds all receivers of the stream that the bus announces, at present and later. From the next start on, the hubs
     * know the sender's transfers, under the name of the gateway's session.
     */
    public synchronized void follow(Gateway gateway) throws GatewayException {
        if (reports == null) {
            reports = new TransferReports(gateway.session(), settings.stream(), settings.flow());
        }
        followed.add(new FollowedReceivers(gateway.session(), flow));
    }

    /** Waits until so many receivers are connected; returns whether they are. */
    public boolean waitFor(int receivers, Duration timeout) throws BulkException {
        return flow.waitFor(receivers, timeout.toNanos());
    }

    /** Begins a transfer: waits for the receivers, and until they have taken the parameter. */
    public BulkStarted start(byte[] parameter) throws BulkException {
        byte[] copy = parameter.clone();
        BulkStarted started = flow.start(ByteBuffer.wrap(copy));
        TransferReports to = reports();
        if (to != null) {
            to.began(started.transfer(), copy);
        }
        return started;
    }

    /** Begins a transfer with a text as its parameter. */
    public BulkStarted start(String parameter) throws BulkException {
        return start(parameter.getBytes(StandardCharsets.UTF_8));
    }

    /** Begins a transfer with named parameters, which receivers get as a JSON object. */
    public BulkStarted start(Map<String, ?> parameters) throws BulkException {
        return start(Json.write(parameters));
    }

    /** Leaves out the data before this byte, which all receivers have ({@link BulkStarted#have}). Call it before data. */
    public void beginAt(long offset) throws BulkException {
        flow.beginAt(offset);
    }

    /** Sends a block of any length. The buffer may be used again after the call, and its position is at its limit. */
    public void send(ByteBuffer block) throws IOException {
        sendPiece(block, true);
    }

    /** Sends a block. */
    public void send(byte[] block) throws IOException {
        send(ByteBuffer.wrap(block));
    }

    /** Sends a part of a block, which continues with the next part unless it ends here. */
    public void sendPiece(ByteBuffer piece, boolean endOfBlock) throws IOException {
        flow.send(piece.remaining(), into -> {
            int length = into.remaining();
            into.put(piece.slice(piece.position(), length));
            piece.position(piece.position() + length);
        }, endOfBlock);
    }

    /** Sends bytes of a file as a block. The channel's position does not change. */
    public void send(FileChannel file, long from, long length) throws IOException {
        if (from < 0 || length < 0) {
            throw new IllegalArgumentException("a block of " + length + " bytes from byte " + from);
        }
        long[] at = {from};
        flow.send(length, into -> {
            while (into.hasRemaining()) {
                int read = file.read(into, at[0]);
                if (read < 0) {
                    throw new EOFException("the file ends at byte " + at[0] + ", and " + (from + length) + " were announced");
                }
                at[0] += read;
            }
        }, true);
    }

    /** Sends a file under its own name as a transfer of its own. */
    public BulkReport sendFile(Path path) throws IOException {
        return sendFile(path, path.getFileName().toString(), "", false);
    }

    /**
     * Sends a file as a transfer of its own, as {@code tampu bulk send} does.
     *
     * @param name path below the receiver's directory
     * @param parameter text for the receiver
     * @param resume whether only the rest is sent if an earlier attempt left a part there
     */
    public BulkReport sendFile(Path path, String name, String parameter, boolean resume) throws IOException {
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
            long size = file.size();
            Map<String, Object> label = new LinkedHashMap<>();
            label.put("file", name);
            label.put("size", size);
            label.put("modified", Files.getLastModifiedTime(path).to(TimeUnit.NANOSECONDS));
            if (resume) {
                label.put("continue", true);
            }
            if (!parameter.isEmpty()) {
                label.put("parameter", parameter);
            }
            BulkStarted started = start(label);
            try {
                long from = resume ? Math.min(started.have(), size) : 0;
                if (from > 0) {
                    beginAt(from);
                }
                if (from < size) {
                    send(file, from, size - from);
                }
                return stop();
            } catch (IOException | RuntimeException failed) {
                giveUp(failed);
                throw failed;
            }
        }
    }

    private void giveUp(Exception failed) {
        try {
            reset();
        } catch (BulkException closed) {
            failed.addSuppressed(closed);
        }
    }

    /** Ends the transfer, waits until every receiver has everything, and returns the result. */
    public BulkReport stop() throws BulkException {
        BulkReport report = flow.stop();
        ended(report);
        return report;
    }

    private synchronized TransferReports reports() {
        return reports;
    }

    private void ended(BulkReport report) {
        TransferReports to = reports();
        if (to != null && report != null) {
            to.ended(report);
        }
    }

    /** Gives the transfer up. The receivers get a reset, and no more of its data. Does nothing without a transfer. */
    public void reset() throws BulkException {
        ended(flow.reset());
    }

    /**
     * Closes the connections. A running transfer is given up behind its data, which receivers get within 3 s, or they
     * report its end as incomplete.
     */
    @Override
    public synchronized void close() {
        followed.forEach(FollowedReceivers::close);
        ended(flow.close());
        if (reports != null) {
            reports.close();
            reports = null;
        }
    }
}
