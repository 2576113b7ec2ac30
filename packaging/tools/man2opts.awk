# man2opts.awk - read the OPTIONS of a manual page, print the daemon's option table as a C header (see options.h).
# An option is a comment `.\" opt: name type default`, its `.It` line, and the first sentence below it: the help line.
# A comment `.\" command: name` starts the table of a command: <daemon>_<name>_options.
function fail(text) { print "man2opts: " FILENAME ": " text > "/dev/stderr"; failed = 1; exit 1 }
function quote(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function plain(s) {
	sub(/^\.(Pa|Ar|Nm|Ql|Dq|Cm|Li|Va|Fl|Xr|Em) /, "", s)
	gsub(/\\-/, "-", s); gsub(/\\&/, "", s); gsub(/\\e/, "\\", s)
	# Punctuation that a macro has as its last argument belongs to the word before it.
	while (match(s, / [.,;:)]$/)) s = substr(s, 1, RSTART - 1) substr(s, RSTART + 1)
	return s
}
BEGIN {
	types["string"] = "OPTION_STRING"; types["int"] = "OPTION_INT"; types["bool"] = "OPTION_BOOL"
	types["duration"] = "OPTION_DURATION"; types["list"] = "OPTION_LIST"
	id = daemon; gsub(/-/, "_", id)
	print "/* Made from man/" daemon ".8 by packaging/tools/man2opts.awk. Do not edit. */"
	print "#pragma once"
	print "#include \"common/base/options.h\""
	print "static const struct option_spec " id "_options[] = {"
}
/^\.\\" command: / {
	if (want) fail("no text for --" name)
	command = $3; gsub(/-/, "_", command)
	print "\t{ 0 },\n};\nstatic const struct option_spec " id "_" command "_options[] = {"
	next
}
/^\.\\" opt: / {
	name = $3; type = $4; fallback = $5; argument = ""; text = ""
	for (i = 6; i <= NF; i++) fallback = fallback " " $i
	if (!(type in types)) fail("--" name ": unknown type " type)
	if (want) fail("no text for --" name)
	want = 1; next
}
/^\.It / && want == 1 { argument = $0; if (!sub(/^.* Ar /, "", argument)) argument = ""; want = 2; next }
want == 2 && /^\.(Pp|It|El|\\)/ { fail("no text for --" name) }
want == 2 {
	line = plain($0)
	# A macro line or a line without its full stop goes on in the next one.
	text = text == "" ? line : text (line ~ /^[.,;:)]/ ? "" : " ") line
	if (line !~ /\.$/) next
	sub(/ \.$/, ".", text); sub(/\.$/, "", text)
	printf "\t{ %s, %s, %s, %s, %s },\n", quote(name), types[type], fallback == "-" ? "NULL" : quote(fallback), \
		quote(argument), quote(text)
	want = 0
}
END { if (!failed) { if (want) fail("no text for --" name); print "\t{ 0 },\n};" } }
