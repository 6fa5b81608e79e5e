package org.tampu.bulk;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.tampu.internal.json.Json;

/**
 * A question of the service {@code bulk/control}.
 *
 * @param name name of the offer, or null for a list
 * @param verb the command
 * @param members the command's members
 */
record ControlCommand(String name, String verb, Map<String, Object> members) {
    private static final Map<String, Set<String>> MEMBERS = Map.of("state", Set.of(), "close", Set.of(),
            "start", Set.of("flow", "parameter", "file"), "pace", Set.of("flow", "bytes_per_s"), "pause", Set.of("flow"),
            "resume", Set.of("flow"), "stop", Set.of("flow"), "open", Set.of("flows", "protocol", "checksum", "protection"));

    /** Reads a question. */
    static ControlCommand parse(String question) throws BulkRefusal {
        Map<String, Object> json;
        try {
            json = question.isBlank() ? Map.of() : Json.object(question);
        } catch (IllegalArgumentException malformed) {
            throw new BulkRefusal("the question cannot be read: " + malformed.getMessage());
        }
        known("the question", json, Set.of("name", "process", "do"));
        Object name = json.get("name");
        Object command = json.getOrDefault("do", "state");
        if (name != null && !(name instanceof String)) {
            throw new BulkRefusal("the question cannot be read: `name` is no text");
        }
        if (command instanceof String word && MEMBERS.containsKey(word) && MEMBERS.get(word).isEmpty()) {
            return new ControlCommand((String) name, word, Map.of());
        }
        if (command instanceof Map<?, ?> one && one.size() == 1) {
            var only = one.entrySet().iterator().next();
            String verb = String.valueOf(only.getKey());
            if (MEMBERS.containsKey(verb) && !MEMBERS.get(verb).isEmpty() && only.getValue() instanceof Map<?, ?> given) {
                @SuppressWarnings("unchecked")
                Map<String, Object> members = (Map<String, Object>) given;
                known(verb, members, MEMBERS.get(verb));
                return new ControlCommand((String) name, verb, members);
            }
        }
        throw new BulkRefusal("the question cannot be read: `do` has no command of this page: spec/bulk-control.md");
    }

    private static void known(String what, Map<String, Object> json, Set<String> members) throws BulkRefusal {
        for (String member : json.keySet()) {
            if (!members.contains(member)) {
                throw new BulkRefusal("the question cannot be read: unknown member '" + member + "' of " + what);
            }
        }
    }

    /** Returns a text; null if it is missing. */
    String text(String member) throws BulkRefusal {
        Object value = members.get(member);
        if (value != null && !(value instanceof String)) {
            throw new BulkRefusal("the question cannot be read: `" + member + "` is no text");
        }
        return (String) value;
    }

    /** Returns a number. */
    double number(String member) throws BulkRefusal {
        if (members.get(member) instanceof Number value) {
            return value.doubleValue();
        }
        throw new BulkRefusal("the question cannot be read: `" + member + "` is no number");
    }

    /** Returns a list of texts; an empty one if it is missing. */
    List<String> texts(String member) throws BulkRefusal {
        List<String> found = new ArrayList<>();
        Object value = members.get(member);
        if (value != null && !(value instanceof List<?>)) {
            throw new BulkRefusal("the question cannot be read: `" + member + "` is no list");
        }
        if (value instanceof List<?> list) {
            for (Object each : list) {
                found.add(String.valueOf(each));
            }
        }
        return found;
    }
}
