package org.tampu.bulk;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.tampu.gateway.Gateway;
import org.tampu.gateway.GatewayException;
import org.tampu.internal.json.Json;

/**
 * Commands to the sender or receiver that a program offers under a name, as {@code tampu bulk control} gives them.
 *
 * <pre>{@code
 * BulkControl correlator = new BulkControl(gateway, "correlator", Duration.ofSeconds(5));
 * correlator.start(null, "uid://A002/X1", null);
 * correlator.pace(null, 50e6);
 * correlator.stop(null);
 * }</pre>
 *
 * <p>Each command returns the state after it, with the members of {@code spec/bulk-control.md}. A {@link GatewayException}
 * has the code {@code unanswered} if no program offers the name or none answers in time, {@code denied} if the rules of its
 * host refuse, and {@code failed} with the reason if the program refuses. A flow of null means all flows, or the only one
 * for a start.
 */
public final class BulkControl {
    private static final String SERVICE = "bulk/control";

    private final Gateway gateway;
    private final String name;
    private final Duration timeout;

    /** Makes the commands to the offer of this name; finding it and carrying a command out may each take the timeout. */
    public BulkControl(Gateway gateway, String name, Duration timeout) {
        this.gateway = gateway;
        this.name = name;
        this.timeout = timeout;
    }

    /** Returns all senders and receivers that programs offer, with their states. */
    public static List<Map<String, Object>> offers(Gateway gateway, Duration timeout) throws GatewayException {
        List<Map<String, Object>> found = new ArrayList<>();
        try {
            for (byte[] part : gateway.askAll(SERVICE, "{}", timeout)) {
                found.add(Json.object(new String(part, StandardCharsets.UTF_8)));
            }
        } catch (GatewayException none) {
            if (!none.code().equals("unanswered")) {
                throw none;
            }
        }
        return found;
    }

    /** Returns the state and its counters. */
    public Map<String, Object> state() throws GatewayException {
        return ask("state");
    }

    /**
     * Starts a sender.
     *
     * @param parameter a text that receivers get before the data
     * @param file one of the files that the program offers; null leaves the choice to the program
     */
    public Map<String, Object> start(String flow, String parameter, String file) throws GatewayException {
        Map<String, Object> what = of(flow);
        what.put("parameter", parameter);
        if (file != null) {
            what.put("file", file);
        }
        return ask(Map.of("start", what));
    }

    /**
     * Limits the rate of a sender, also of a running transfer.
     *
     * @param bytesPerSecond 1000 to 10^12; 0 lifts the limit
     */
    public Map<String, Object> pace(String flow, double bytesPerSecond) throws GatewayException {
        Map<String, Object> what = of(flow);
        what.put("bytes_per_s", bytesPerSecond);
        return ask(Map.of("pace", what));
    }

    /** Sends no data until {@link #resume}. */
    public Map<String, Object> pause(String flow) throws GatewayException {
        return ask(Map.of("pause", of(flow)));
    }

    /** Ends a pause. */
    public Map<String, Object> resume(String flow) throws GatewayException {
        return ask(Map.of("resume", of(flow)));
    }

    /** Ends the running transfer of a sender. */
    public Map<String, Object> stop(String flow) throws GatewayException {
        return ask(Map.of("stop", of(flow)));
    }

    /**
     * Opens a receiver.
     *
     * @param settings at least as strict as those of its program: {@code flows}, {@code protocol}, {@code checksum},
     *     {@code protection}; an empty map takes the program's own
     */
    public Map<String, Object> open(Map<String, Object> settings) throws GatewayException {
        return ask(Map.of("open", settings));
    }

    /** Closes a receiver. Its running transfers end incomplete. */
    public Map<String, Object> close() throws GatewayException {
        return ask("close");
    }

    private static Map<String, Object> of(String flow) {
        Map<String, Object> what = new LinkedHashMap<>();
        if (flow != null) {
            what.put("flow", flow);
        }
        return what;
    }

    /** Asks the one process that offers the name: two of them must not both obey. */
    private Map<String, Object> ask(Object command) throws GatewayException {
        List<Map<String, Object>> own = new ArrayList<>();
        for (Map<String, Object> offer : offers(gateway, timeout)) {
            if (name.equals(offer.get("name"))) {
                own.add(offer);
            }
        }
        if (own.isEmpty()) {
            throw new GatewayException("unanswered", "no program offers the control '" + name
                    + "'; 'tampu bulk control list' shows what is offered");
        }
        if (own.size() > 1) {
            throw new GatewayException("failed", own.get(0).get("source") + " and " + own.get(1).get("source")
                    + " offer the control '" + name + "'; give each another name");
        }
        Map<String, Object> question = new LinkedHashMap<>();
        question.put("name", name);
        question.put("process", own.get(0).get("process"));
        question.put("do", command);
        // A part of a long answer can end inside a letter.
        ByteArrayOutputStream answer = new ByteArrayOutputStream();
        for (byte[] part : gateway.ask(SERVICE, Json.write(question), timeout)) {
            answer.writeBytes(part);
        }
        return Json.object(answer.toString(StandardCharsets.UTF_8));
    }
}
