import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Flow;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.tampu.bulk.BulkControl;
import org.tampu.bulk.BulkException;
import org.tampu.bulk.BulkHandler;
import org.tampu.bulk.BulkOffer;
import org.tampu.bulk.BulkReceiver;
import org.tampu.bulk.BulkSender;
import org.tampu.event.Attribute;
import org.tampu.event.DataType;
import org.tampu.event.Delivery;
import org.tampu.event.Encoded;
import org.tampu.event.Event;
import org.tampu.event.EventClient;
import org.tampu.event.EventServer;
import org.tampu.event.Quality;
import org.tampu.event.Value;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.gateway.Service;
import org.tampu.log.Logger;

/** What the processes of {@code java_gateway.py} do, by their first argument. */
public final class Remote {
    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "types" -> types();
            case "flow" -> flow(Integer.parseInt(arguments[1]));
            case "wrong" -> wrong();
            case "control" -> control();
            case "ask" -> ask();
            case "offer" -> offer(arguments[1]);
            case "log" -> log(arguments[1], Integer.parseInt(arguments[2]));
            case "fill" -> fill(arguments[1], Integer.parseInt(arguments[2]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /** Offers a sender, a receiver and a service, until standard input ends. Each transfer is said in a line. */
    private static void offer(String domain) throws Exception {
        BulkHandler handler = new BulkHandler() {
            private long bytes;

            @Override
            public long start(Start start) {
                bytes = 0;
                return 0;
            }

            @Override
            public void data(ByteBuffer data, long offset, boolean endOfBlock) {
                bytes += data.remaining();
            }

            @Override
            public void stop(End end) {
                System.out.println("received " + bytes + " complete=" + end.complete());
            }
        };
        try (Gateway gateway = Gateway.local("java/offers");
                BulkSender sender = BulkSender.builder(domain, "java/sender", "offered").receivers(1, Duration.ofSeconds(60)).open();
                BulkOffer corr = BulkOffer.sender(gateway, "corr", List.of(sender), order -> {
                    if ("none".equals(order.file())) {
                        throw new IllegalArgumentException("no file 'none' is offered");
                    }
                    order.sender().start(order.parameter());
                    try {
                        for (int block = 0; block < 40; block++) {
                            order.sender().send(new byte[10_000]);
                        }
                    } catch (BulkException stopped) {
                        System.out.println("work " + stopped.kind());
                    }
                    System.out.println("sent complete=" + order.sender().stop().isComplete());
                });
                BulkOffer archive = BulkOffer.receiver(gateway, "archive", "offered", List.of("data"),
                        flows -> new BulkReceiver(domain, "java/receiver", "offered", Map.of("data", handler)));
                Service echo = gateway.serve("java/echo", question -> {
                    if (question.text().isEmpty()) {
                        throw new IllegalStateException("nothing to say");
                    }
                    question.part(question.octets());
                    question.part(question.asker().getBytes(StandardCharsets.UTF_8));
                })) {
            sender.follow(gateway);
            System.out.println("ready " + archive.state().get("kind") + " " + echo.incarnation().isEmpty());
            BulkOffer.OwnWork work = new Scanner(System.in).nextLine().equals("work") ? corr.beginWork(sender) : () -> { };
            System.out.println("begun");
            System.in.read();
            work.close();
        }
        System.out.println("ended");
    }

    /** Asks the service of another program. */
    private static void ask() throws Exception {
        try (Gateway gateway = Gateway.local("java/asker")) {
            List<byte[]> parts = gateway.ask("java/echo", "hello", Duration.ofSeconds(30));
            for (byte[] part : parts) {
                System.out.println(new String(part, StandardCharsets.UTF_8));
            }
            try {
                gateway.ask("java/echo", "", Duration.ofSeconds(30));
            } catch (GatewayException refused) {
                System.out.println(refused.code() + " " + refused.getMessage());
            }
        }
    }

    /** Commands to the sender of the command line. */
    private static void control() throws Exception {
        try (Gateway gateway = Gateway.local("far/control")) {
            while (BulkControl.offers(gateway, Duration.ofSeconds(60)).isEmpty()) {
                Thread.sleep(10);
            }
            BulkControl corr = new BulkControl(gateway, "corr", Duration.ofSeconds(60));
            System.out.println("active " + corr.state().get("active"));
            corr.pace(null, 1e6);
            corr.pause("data");
            System.out.println("active " + corr.start(null, "uid://A002/X1", "small").get("active"));
            corr.resume(null);
            Map<String, Object> state;
            do {
                state = corr.state();
            } while (Boolean.TRUE.equals(state.get("active")));
            System.out.println("starts " + state.get("starts") + ", failure " + state.get("failure"));
            for (String name : new String[] {"corr", "other"}) {
                try {
                    new BulkControl(gateway, name, Duration.ofSeconds(5)).stop(null);
                } catch (GatewayException refused) {
                    System.out.println(refused.code() + " " + refused.getMessage());
                }
            }
        }
    }

    private static Object elements(DataType type, int count) {
        return switch (type) {
            case BOOLEAN -> {
                boolean[] all = new boolean[count];
                all[count - 1] = true;
                yield all;
            }
            case UCHAR -> {
                byte[] all = new byte[count];
                all[count - 1] = (byte) 200;
                yield all;
            }
            case STATE -> {
                byte[] all = new byte[count];
                all[count - 1] = 8;
                yield all;
            }
            case SHORT, USHORT -> {
                short[] all = new short[count];
                all[count - 1] = -2;
                yield all;
            }
            case ENUM -> {
                short[] all = new short[count];
                all[count - 1] = 1;
                yield all;
            }
            case LONG, ULONG -> {
                int[] all = new int[count];
                all[count - 1] = Integer.MIN_VALUE;
                yield all;
            }
            case LONG64, ULONG64 -> {
                long[] all = new long[count];
                all[count - 1] = Long.MIN_VALUE + 1;
                yield all;
            }
            case FLOAT -> {
                float[] all = new float[count];
                all[count - 1] = 1.5f;
                yield all;
            }
            case DOUBLE -> {
                double[] all = new double[count];
                all[count - 1] = -2.25e-9;
                yield all;
            }
            case STRING -> {
                String[] all = new String[count];
                Arrays.fill(all, "déjà vu");
                yield all;
            }
            case ENCODED -> new Encoded("JPEG", new byte[] {-1, -40, 0});
        };
    }

    /** Each type in each format, pushed and received. */
    private static void types() throws Exception {
        try (Gateway one = Gateway.local("java/server"); Gateway other = Gateway.local("java/client")) {
            List<Value> values = new ArrayList<>();
            for (DataType type : DataType.values()) {
                values.add(Value.scalarOf(type, elements(type, 1)));
                if (type != DataType.ENCODED) {
                    values.add(Value.spectrum(type, elements(type, 5)));
                    values.add(Value.image(type, 3, 4, elements(type, 12)));
                }
            }
            List<String> formats = List.of("scalar", "spectrum", "image");
            LinkedBlockingQueue<Delivery> got = new LinkedBlockingQueue<>();
            new EventClient(other).subscribe(List.of("types/*"), Map.of("kinds", List.of("user", "change")), got::add, end -> { });
            int equal = 0;
            for (Value value : values) {
                Map<String, Object> more = value.type() == DataType.ENUM ? Map.of("labels", List.of("off", "on")) : Map.of();
                String name = "types/of/" + value.type().name().toLowerCase(Locale.ROOT) + "/" + formats.get(value.format());
                Attribute attribute = new EventServer(one).declare(name, value.type(), formats.get(value.format()), more);
                attribute.push(value, Quality.WARNING);
                Delivery delivery = got.poll(20, TimeUnit.SECONDS);
                while (delivery != null && (delivery.event() == null || delivery.event().value() == null)) {
                    delivery = got.poll(20, TimeUnit.SECONDS);
                }
                if (delivery != null && delivery.attribute().equals(name) && value.equals(delivery.event().value())
                        && delivery.event().quality() == Quality.WARNING) {
                    equal++;
                } else {
                    System.out.println(name + ": pushed " + value + ", got " + delivery);
                }
            }
            System.out.println((equal == values.size() ? "all of " : "only ") + equal + " values are equal");
        }
    }

    /** Many events, through a publisher whose subscriber asks for a few at a time. */
    private static void flow(int count) throws Exception {
        try (Gateway one = Gateway.local("java/server"); Gateway other = Gateway.local("java/client")) {
            Attribute attribute = new EventServer(one).declare("flow/of/many/values", DataType.LONG,
                    Map.of("criteria", Map.of("change", Map.of("abs", "0.5"))));
            CountDownLatch begun = new CountDownLatch(1);
            CompletableFuture<String> done = new CompletableFuture<>();
            attribute.push(Value.of(-1));
            new EventClient(other).publisher(List.of("flow/*"), Map.of()).subscribe(new Flow.Subscriber<>() {
                private Flow.Subscription subscription;
                private int next;
                private int taken;
                private long missed;

                @Override
                public void onSubscribe(Flow.Subscription given) {
                    subscription = given;
                    given.request(100);
                }

                @Override
                public void onNext(Delivery delivery) {
                    begun.countDown();
                    if (++taken % 100 == 0) {
                        subscription.request(100);
                    }
                    if (delivery.event() == null) {
                        missed += delivery.missedTo() - delivery.missedFrom();
                        return;
                    }
                    int value = ((int[]) delivery.event().value().elements())[0];
                    if (value >= 0 && value == next) {
                        next++;
                    }
                    if (next == count) {
                        done.complete(next + " in order, " + missed + " missed");
                    }
                }

                @Override
                public void onError(Throwable why) {
                    done.completeExceptionally(why);
                }

                @Override
                public void onComplete() {
                    done.complete("completed at " + next);
                }
            });
            begun.await(20, TimeUnit.SECONDS);
            for (int from = 0; from < count; from += 100) {
                List<Event> readings = new ArrayList<>();
                for (int value = from; value < from + 100; value++) {
                    readings.add(Event.reading(Value.of(value), Quality.VALID, 0));
                }
                attribute.push(readings);
            }
            System.out.println(done.get(100, TimeUnit.SECONDS));
        }
    }

    private static void wrong() throws Exception {
        try (Gateway gateway = Gateway.local("java/server")) {
            EventServer server = new EventServer(gateway);
            Attribute attribute = server.declare("a/b/c/d", DataType.DOUBLE, Map.of());
            for (Value value : List.of(Value.of(1), Value.spectrum(DataType.DOUBLE, new double[2]))) {
                try {
                    attribute.push(value);
                } catch (IllegalArgumentException expected) {
                    System.out.println(expected.getMessage());
                }
            }
            try {
                server.declare("no name", DataType.DOUBLE, Map.of());
            } catch (GatewayException expected) {
                System.out.println(expected.code());
            }
        }
    }

    private static void log(String source, int calls) throws Exception {
        Logger logger = Logger.open(source);
        for (int call = 0; call < calls; call++) {
            logger.info("call {} {}", 0, call);
            LockSupport.parkNanos(500_000);
        }
        System.out.println("flushed " + logger.flush(Duration.ofSeconds(100)) + " lost " + logger.lost());
    }

    private static void fill(String source, int calls) throws Exception {
        Logger logger = Logger.open(source);
        for (int call = 0; call < calls; call++) {
            logger.info("call {} {}", 0, call);
        }
        System.out.println("lost " + logger.lost());
        System.out.println("flushed " + logger.flush(Duration.ofSeconds(100)));
    }
}
