import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Array;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
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
import org.tampu.log.Level;
import org.tampu.log.LogQuery;
import org.tampu.log.Logger;
import org.tampu.log.StoredRecord;

/** Driver of the conformance kit in Java. README.md has its protocol, ../peers/conformance.py runs it. */
public final class Driver {
    private static final List<String> FORMATS = List.of("scalar", "spectrum", "image");
    private static final List<String> STATES = List.of(
            "ON", "OFF", "CLOSE", "OPEN", "INSERT", "EXTRACT", "MOVING", "STANDBY", "FAULT", "INIT", "RUNNING", "ALARM", "DISABLE",
            "UNKNOWN");
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    /** A command: each member is a text or a list of texts. */
    static final class Command {
        private final Map<String, List<String>> members = new HashMap<>();
        private final String line;
        private int at;

        Command(String line) {
            this.line = line;
            expect('{');
            while (line.charAt(at) != '}') {
                String name = text();
                expect(':');
                List<String> values = new ArrayList<>();
                if (line.charAt(at) == '"') {
                    values.add(text());
                } else {
                    expect('[');
                    while (line.charAt(at) != ']') {
                        values.add(text());
                        skip(',');
                    }
                    expect(']');
                }
                members.put(name, values);
                skip(',');
            }
        }

        private void skip(char sign) {
            at += line.charAt(at) == sign ? 1 : 0;
            while (at < line.length() && line.charAt(at) == ' ') {
                at++;
            }
        }

        private void expect(char sign) {
            if (line.charAt(at) != sign) {
                throw new IllegalArgumentException("expected " + sign + " at " + line.substring(at));
            }
            skip(sign);
        }

        private String text() {
            StringBuilder text = new StringBuilder();
            while (line.charAt(++at) != '"') {
                char sign = line.charAt(at);
                if (sign == '\\') {
                    sign = line.charAt(++at);
                    if (sign == 'u') {
                        sign = (char) Integer.parseInt(line.substring(at + 1, at + 5), 16);
                        at += 4;
                    } else if ("nrtbf".indexOf(sign) >= 0) {
                        sign = "\n\r\t\b\f".charAt("nrtbf".indexOf(sign));
                    }
                }
                text.append(sign);
            }
            skip('"');
            return text.toString();
        }

        List<String> list(String name) {
            return members.getOrDefault(name, List.of());
        }

        String get(String name) {
            return list(name).isEmpty() ? "" : list(name).get(0);
        }
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char sign : text.toCharArray()) {
            out.append(sign < 32 || sign == '"' || sign == '\\' ? String.format("\\u%04x", (int) sign) : sign);
        }
        return out.append('"').toString();
    }

    /** Prints a line for the runner; values are texts, or lists of texts. */
    static void say(Map<String, Object> line) {
        List<String> members = new ArrayList<>();
        line.forEach((name, value) -> members.add(quoted(name) + ": " + (value instanceof List<?> all
                ? "[" + String.join(", ", all.stream().map(each -> quoted((String) each)).toList()) + "]" : quoted((String) value))));
        OUT.println("{" + String.join(", ", members) + "}");
    }

    private static Object elements(DataType type, List<String> texts) {
        int count = texts.size();
        if (type == DataType.ENCODED) {
            return new Encoded(texts.get(0), HexFormat.of().parseHex(texts.get(1)));
        }
        Class<?> element = switch (type) {
            case BOOLEAN -> boolean.class;
            case UCHAR, STATE -> byte.class;
            case SHORT, USHORT, ENUM -> short.class;
            case LONG, ULONG -> int.class;
            case LONG64, ULONG64 -> long.class;
            case FLOAT -> float.class;
            case DOUBLE -> double.class;
            default -> String.class;
        };
        Object all = Array.newInstance(element, count);
        for (int at = 0; at < count; at++) {
            String text = texts.get(at);
            Object one = switch (type) {
                case BOOLEAN -> text.equals("true");
                case UCHAR -> (byte) Integer.parseInt(text);
                case STATE -> (byte) STATES.indexOf(text);
                case SHORT, ENUM -> Short.parseShort(text);
                case USHORT -> (short) Integer.parseInt(text);
                case LONG -> Integer.parseInt(text);
                case ULONG -> Integer.parseUnsignedInt(text);
                case LONG64 -> Long.parseLong(text);
                case ULONG64 -> Long.parseUnsignedLong(text);
                case FLOAT -> Float.intBitsToFloat(Integer.parseUnsignedInt(text, 16));
                case DOUBLE -> Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
                default -> text;
            };
            Array.set(all, at, one);
        }
        return all;
    }

    private static List<String> texts(Value value) {
        if (value.elements() instanceof Encoded encoded) {
            return List.of(encoded.format(), HexFormat.of().formatHex(encoded.data()));
        }
        List<String> texts = new ArrayList<>();
        for (int at = 0; at < Array.getLength(value.elements()); at++) {
            Object one = Array.get(value.elements(), at);
            texts.add(switch (value.type()) {
                case UCHAR -> Integer.toString((Byte) one & 0xff);
                case STATE -> STATES.get((Byte) one);
                case USHORT -> Integer.toString((Short) one & 0xffff);
                case ULONG -> Integer.toUnsignedString((Integer) one);
                case ULONG64 -> Long.toUnsignedString((Long) one);
                case FLOAT -> String.format("%08x", Float.floatToRawIntBits((Float) one));
                case DOUBLE -> String.format("%016x", Double.doubleToRawLongBits((Double) one));
                default -> one.toString();
            });
        }
        return texts;
    }

    private static void print(Delivery delivery) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("line", "event");
        line.put("name", delivery.attribute());
        line.put("source", delivery.source());
        line.put("reason", delivery.reason());
        line.put("missed", delivery.mayMiss() ? List.of("unknown") : delivery.missedTo() == 0 ? List.of()
                : List.of(Long.toUnsignedString(delivery.missedFrom()), Long.toUnsignedString(delivery.missedTo())));
        Event event = delivery.event();
        if (event != null) {
            line.put("number", Long.toUnsignedString(event.number()));
            line.put("quality", event.quality().name().toLowerCase(Locale.ROOT));
            List<String> errors = new ArrayList<>();
            event.errors().forEach(each -> errors.addAll(List.of(each.reason(), each.description(), each.origin())));
            line.put("errors", errors);
        }
        if (event != null && event.value() != null) {
            Value value = event.value();
            line.put("type", value.type().label());
            line.put("format", FORMATS.get(value.format()));
            line.put("x", Integer.toString(value.x()));
            line.put("y", Integer.toString(value.y()));
            line.put("elements", texts(value));
        }
        say(line);
    }

    private final Gateway gateway;
    private final DriverBulk bulk;
    private final Logger logger;
    private final Map<String, Attribute> attributes = new HashMap<>();
    private final Map<String, DataType> types = new HashMap<>();
    private final Map<String, String> formats = new HashMap<>();

    private Driver(String name) throws Exception {
        this.gateway = Gateway.local(name + "/server");
        this.bulk = new DriverBulk(name + "/bulk");
        this.logger = Logger.open(name);
    }

    private void push(Command command) throws Exception {
        DataType type = types.get(command.get("name"));
        Object elements = elements(type, command.list("elements"));
        Value value = switch (formats.get(command.get("name"))) {
            case "scalar" -> Value.scalarOf(type, elements);
            case "spectrum" -> Value.spectrum(type, elements);
            default -> Value.image(type, Integer.parseInt(command.get("x")), Integer.parseInt(command.get("y")), elements);
        };
        Quality quality = Quality.valueOf(command.get("quality").toUpperCase(Locale.ROOT));
        Attribute attribute = attributes.get(command.get("name"));
        if (command.list("kinds").isEmpty()) {
            attribute.push(value, quality);
        } else {
            attribute.push(List.of(Event.reading(value, quality, 0).withKinds(command.list("kinds").toArray(String[]::new))));
        }
    }

    /** Prints the records of a process, once the archive has as many as asked for. */
    private void records(Command command) throws Exception {
        Map<String, Object> query = Map.of("fields", Map.of("process", List.of(command.get("process"))));
        List<StoredRecord> found = List.of();
        for (int turn = 0; turn < 200 && found.size() < Integer.parseInt(command.get("count")); turn++) {
            Thread.sleep(turn == 0 ? 0 : 50);
            found = LogQuery.search(gateway, query);
        }
        for (StoredRecord record : found) {
            Map<String, Object> line = new LinkedHashMap<>();
            line.put("line", "record");
            line.put("process", record.process());
            String level = record.level().name();
            line.put("level", level.charAt(0) + level.substring(1).toLowerCase(Locale.ROOT));
            line.put("message", record.message());
            line.put("names", record.data().stream().map(Map.Entry::getKey).toList());
            line.put("values", record.data().stream().map(Map.Entry::getValue).toList());
            say(line);
        }
    }

    private void run(Command command) throws Exception {
        String attribute = command.get("name");
        switch (command.get("do")) {
            case "declare" -> {
                DataType type = DataType.of(command.get("type"));
                types.put(attribute, type);
                formats.put(attribute, command.get("format"));
                Map<String, Object> more = Map.of("labels", command.list("labels"));
                attributes.put(attribute, new EventServer(gateway).declare(attribute, type, command.get("format"), more));
            }
            case "readable" -> {
                Attribute readable = new EventServer(gateway).declare(attribute, DataType.DOUBLE, Map.of());
                attributes.put(attribute, readable);
                Deque<String> left = new ArrayDeque<>(command.list("elements"));
                readable.onRead(Duration.ZERO, () -> {
                    String next = left.size() > 1 ? left.remove() : left.peek();
                    return Value.scalarOf(DataType.DOUBLE, elements(DataType.DOUBLE, List.of(next)));
                });
            }
            case "withdraw" -> attributes.remove(attribute).close();
            case "push" -> push(command);
            case "follow" -> new EventClient(gateway).subscribe(command.list("attributes"), Map.of("kinds", command.list("kinds")),
                    Driver::print, why -> say(Map.of("line", "error", "do", "follow", "name", "", "why", why.getMessage())));
            case "log" -> logger.at(Level.parse(command.get("level"))).data("word", command.get("word"))
                    .data("count", Long.parseLong(command.get("count"))).data("ratio", Double.parseDouble(command.get("ratio")))
                    .data("truth", Boolean.parseBoolean(command.get("truth"))).log("{}", command.get("message"));
            case "records" -> records(command);
            case "receive" -> bulk.receive(command);
            case "sender" -> bulk.open(command);
            case "transfer" -> bulk.transfer(command);
            case "close" -> bulk.close(command);
            default -> throw new IllegalArgumentException("there is no command '" + command.get("do") + "'");
        }
    }

    public static void main(String[] arguments) throws Exception {
        Driver driver = new Driver(arguments[0]);
        say(Map.of("line", "ready"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Command command = new Command(line);
            String verb = command.get("do");
            if (verb.equals("end")) {
                break;
            }
            try {
                driver.run(command);
                if (!verb.equals("push") && !verb.equals("log")) {
                    say(Map.of("line", "done", "do", verb, "name", command.get("name")));
                }
            } catch (Exception why) {
                say(Map.of("line", "error", "do", verb, "name", command.get("name"), "why", String.valueOf(why)));
            }
        }
        driver.gateway.close();
        System.exit(0);
    }
}
