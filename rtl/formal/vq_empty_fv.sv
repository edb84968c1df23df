// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of vq_empty, with one queue pair.
//
// Reasons: an interrupt is asked for only while something is unreported, and only because a marker
// was published that was looked at; or the oldest unreported entry is as old as max-age; or the
// interrupt at empty is on, and an answer came within Fresh cycles whose read began after the last
// publication and found nothing more, and the first such answer is as old as the hold-off.
//
// Due: a queue that is on, empty and unreported is never left alone for Slack cycles, but once
// for the hold-off: there is a question, or an interrupt is on its way; and after two answers that
// it is empty the latter. So it is told within the hold-off, the time of two answers, and three
// times Slack. An interrupt is on its way, too, Slack cycles after an unreported entry is as old as
// max-age or a marker was published.
//
// The surroundings do what they like within this: the driver posts at any time; what it posted is
// published at any time after; a question is taken within 3 cycles, and answered within Answer
// cycles by what had been posted at some moment in between, or not, if something is posted by
// then; vq_notify does one thing at a time, begins what it is asked for within 3 cycles, and sends
// each interrupt within 4. Indexes have two bits. The settings, constants chosen at will, are
// written in any order and at any time, each once; any other accesses are reads.
module vq_empty_fv
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter bit          Reasons = 1'b1,
  parameter bit          Due = 1'b1,
  parameter bit          Reads = 1'b1,      // other accesses, too
  parameter int unsigned TimeW = 7,
  parameter int unsigned Longest = 7,       // setting
  parameter int unsigned Answer = 12,
  parameter int unsigned Fresh = 16,
  parameter int unsigned Slack = 24
) (
  input logic       clk_i,
  // Constants.
  input logic       on_i,
  input logic [2:0] holdoff_i,
  input logic [2:0] max_age_i,
  input logic       markers_i,
  // Choices of each cycle.
  input logic       access_i,
  input logic [2:0] word_i,
  input logic       post_i,
  input logic       pub_i,
  input logic       pub_all_i,
  input logic       pub_marker_i,
  input logic       pub_age_i,
  input logic       pub_ready_i,
  input logic       ask_ready_i,
  input logic       sample_i,
  input logic       more_two_i,
  input logic       drop_i,
  input logic       ans_i,
  input logic       own_i,
  input logic       tell_ready_i,
  input logic       told_i,
  input logic       sent_i
);
  // ---------------------------------------------------------------- reset, then a clear
  logic [2:0] start_q = 3'd0;
  wire  run   = (start_q == 3'd7);
  wire  rst_n = (start_q != 3'd0);
  always_ff @(posedge clk_i) if (!run) start_q <= start_q + 1'b1;
  wire  clearing = rst_n && start_q < 3'd5;
  vq_clear_t clear;
  assign clear = '{valid: clearing, q: 7'd1};

  logic [TimeW:0] time_q;
  always_ff @(posedge clk_i) time_q <= time_q + 1'b1;

  logic on_q, markers_q;
  logic [2:0] holdoff_q, max_age_q;
  always_ff @(posedge clk_i) begin
    on_q      <= on_i;
    markers_q <= markers_i;
    holdoff_q <= holdoff_i;
    max_age_q <= max_age_i;
  end
  always_comb begin
    if (rst_n) begin
      assume (on_q == on_i && markers_q == markers_i);
      assume (holdoff_q == holdoff_i && max_age_q == max_age_i);
    end
    assume (32'(holdoff_i) <= Longest && 32'(max_age_i) <= Longest);
  end

  // ---------------------------------------------------------------- accesses
  reg_req_t   req_q;
  reg_rsp_t   rsp;
  logic [2:0] set_q;        // settings that were written
  logic [2:0] word;
  assign word = word_i;
  wire        is_set = (word < 3'd3);
  wire        begins = run && access_i && !req_q.valid && (is_set ? !set_q[word[1:0]] : Reads);
  logic [31:0] setting;
  always_comb begin
    unique case (word)
      3'd0:    setting = {on_i, 28'd0, holdoff_i};
      3'd1:    setting = {29'd0, max_age_i};
      default: setting = {31'd0, markers_i};
    endcase
  end
  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      req_q <= '0;
      set_q <= '0;
    end else if (begins) begin
      req_q <= '{valid: 1'b1, write: is_set, addr: {11'b1001_0000_000, word, 2'b00},
                 be: 4'hf, wdata: setting};
    end else if (req_q.valid && rsp.ack) begin
      req_q.valid <= 1'b0;
      if (req_q.write) set_q[req_q.addr[3:2]] <= 1'b1;
    end
  end
  wire writes_empty = req_q.valid && req_q.write && req_q.addr[4:2] == 3'd0;
  wire writes_age   = req_q.valid && req_q.write && req_q.addr[4:2] == 3'd1;
  // On for good; and perhaps already.
  wire on       = on_i && set_q[0];
  wire aging    = (max_age_i != '0) && set_q[1];
  wire marking  = markers_i && set_q[2];
  wire on_early      = on_i && (set_q[0] || writes_empty);
  wire aging_early   = (max_age_i != '0) && (set_q[1] || writes_age);
  wire marking_early = markers_i &&
                       (set_q[2] || (req_q.valid && req_q.write && req_q.addr[4:2] == 3'd2));

  // ---------------------------------------------------------------- driver, card, vq_notify
  typedef enum logic [1:0] {NtFree, NtBusy, NtAway} notify_e;
  notify_e    nt_q;
  logic       nt_asked_q;
  logic [1:0] nt_wait_q, tell_wait_q;
  logic       more_q;               // something is posted beyond what is published
  logic [1:0] idx_q;                // published
  logic       pub_q, pub_marker_q, pub_age_q;   // a publication waits to be taken
  logic       ask_valid, tell_valid, idle, armed;
  qid_t       ask_q, tell_q;
  logic [23:0] left;
  wire  free   = (nt_q == NtFree);
  wire  told   = run && (nt_q == NtBusy) && (nt_wait_q != '0) && told_i;
  wire  tells  = free && tell_valid && tell_ready_i;
  wire  takes  = free && pub_q && !tell_valid && pub_ready_i;
  wire  starts = free && !tells && !takes && own_i && run;
  always_ff @(posedge clk_i) begin
    if (!rst_n) begin
      nt_q        <= NtFree;
      tell_wait_q <= '0;
    end else begin
      tell_wait_q <= (tell_valid && free && !tells) ? tell_wait_q + 1'b1 : '0;
      unique case (nt_q)
        NtFree: if (tells || starts || takes) nt_q <= takes ? NtAway : NtBusy;
        NtBusy: if (told) nt_q <= NtAway;
        default: nt_q <= NtFree;
      endcase
    end
    nt_wait_q <= (nt_q == NtBusy) ? nt_wait_q + 1'b1 : '0;
    if (free) nt_asked_q <= tells;
  end

  wire posts = run && post_i;
  wire [1:0] idx_next = idx_q + 2'd1;
  always_ff @(posedge clk_i) begin
    if (!run) begin
      more_q <= 1'b0;
      idx_q  <= '0;
      pub_q  <= 1'b0;
    end else begin
      if (takes) begin
        idx_q  <= idx_q + 2'd1;
        more_q <= !pub_all_i || posts;
        pub_q  <= 1'b0;
      end else begin
        if (posts) more_q <= 1'b1;
        if (more_q && pub_i && !pub_q) begin
          pub_q        <= 1'b1;
          pub_marker_q <= pub_marker_i;
          pub_age_q    <= pub_age_i;
        end
      end
    end
  end

  // vq_avail: the read sees what is posted at some moment, and nobody asks twice at once.
  logic       open_q, read_q;              // a question; its read is done
  // Of a question: since it was made, something was published, or TX_EMPTY written.
  logic       stale_q, behind_q, takes_q, ask_valid_q;
  logic [1:0] seen_q, ask_wait_q;
  logic [3:0] open_for_q, apart_q;
  wire  asked   = ask_valid && ask_ready_i && run;
  wire  answers = open_q && read_q && ans_i && (apart_q == '0) && !asked;
  wire  renews  = takes || (writes_empty && rsp.ack);
  wire  stale   = ask_valid && (stale_q || renews || (takes_q && !ask_valid_q));
  wire  drops   = open_q && more_q && drop_i && !answers;
  always_ff @(posedge clk_i) begin
    if (!run) begin
      open_q     <= 1'b0;
      apart_q    <= '0;
      ask_wait_q <= '0;
    end else begin
      ask_wait_q <= (ask_valid && !asked) ? ask_wait_q + 1'b1 : '0;
      if (asked) open_q <= 1'b1;
      else if (answers || drops) open_q <= 1'b0;
      if (answers) apart_q <= 4'd8;
      else if (apart_q != '0) apart_q <= apart_q - 1'b1;
    end
    open_for_q <= (asked || !open_q) ? '0 : open_for_q + 1'b1;
    if (asked) read_q <= 1'b0;
    else if (sample_i && !read_q) begin
      read_q <= 1'b1;
      seen_q <= idx_q + (more_q ? (more_two_i ? 2'd2 : 2'd1) : 2'd0);
    end
    takes_q     <= takes && run;
    ask_valid_q <= ask_valid && run;
    stale_q     <= stale && !asked;
    behind_q    <= renews || (asked ? stale : behind_q);
  end
  always_comb begin
    if (run) begin
      assume (tell_wait_q != 2'd3 && ask_wait_q != 2'd3);
      assume (nt_wait_q != 2'd3 || told || nt_q != NtBusy);
      assume (32'(open_for_q) < Answer);
    end
  end

  vq_empty #(.NumQueues(2), .TimeSkip(1'b0), .TimeW(TimeW)) u_dut (
    .clk_i,
    .rst_ni       (rst_n),
    .fn_rst_i     (!run),
    .clear_i      (clear),
    .clear_area_i (start_q[1:0] - 2'd1),
    .time_i       (24'(time_q)),
    .req_i        (req_q),
    .rsp_o        (rsp),
    .pub_valid_i  (pub_q),
    .pub_ready_i  (takes),
    .pub_q_i      (7'd1),
    .pub_idx_i    ({14'd0, idx_next}),
    .pub_marker_i (pub_marker_q),
    .pub_age_i    ({7'd0, pub_age_q}),
    .ask_valid_o  (ask_valid),
    .ask_ready_i  (asked),
    .ask_q_o      (ask_q),
    .ans_valid_i  (answers),
    .ans_q_i      (7'd1),
    .ans_idx_i    (16'(seen_q)),
    .tell_valid_o (tell_valid),
    .tell_ready_i (tells),
    .tell_q_o     (tell_q),
    .told_valid_i (told),
    .told_q_i     (7'd1),
    .told_asked_i (nt_asked_q),
    .told_sent_i  (!nt_asked_q || sent_i),
    .idle_o       (idle),
    .timer_armed_o(armed),
    .timer_left_o (left)
  );

  // ---------------------------------------------------------------- what is true
  typedef logic [6:0] count_t;
  function automatic count_t more_by(input count_t count, input count_t by);
    return (count > 7'd127 - by) ? 7'd127 : count + by;
  endfunction
  logic   unreported_q, known_q, marked_q, marked_early_q;
  count_t age_q;            // of the oldest unreported entry, while max-age is on
  logic   shown_q;          // to be empty, by an answer of after the last publication
  count_t still_q;          // since then
  logic [2:0] old_q;        // as age_q, up to max-age, from when it is published and max-age on
  logic [1:0] answers_q;    // that it is empty, and it has been so since
  logic [5:0] alone_q, aged_q, marked_for_q;  // cycles in which nothing comes of it
  count_t answered_q;       // since the last answer that it is empty
  wire telling = tell_valid || (nt_q == NtBusy && nt_asked_q);
  wire news = takes && !known_q && !told;
  always_ff @(posedge clk_i) begin
    if (!run) begin
      {unreported_q, known_q, marked_q, marked_early_q} <= '0;
      shown_q <= 1'b0;
      {age_q, still_q, old_q, answers_q, alone_q, aged_q, marked_for_q} <= '0;
      answered_q <= '1;
    end else begin
      known_q <= pub_q && !takes && (known_q || told);
      if (told) {unreported_q, marked_q, marked_early_q} <= '0;
      else if (news) begin
        unreported_q <= 1'b1;
        if (pub_marker_q && marking) marked_q <= 1'b1;
        if (pub_marker_q && marking_early) marked_early_q <= 1'b1;
      end
      if (news && !unreported_q) age_q <= pub_age_q ? 7'd16 : 7'd0;
      else age_q <= more_by(age_q, 7'd1);
      if (renews || writes_empty) shown_q <= 1'b0;
      else if (answers && seen_q == idx_q && !behind_q) shown_q <= 1'b1;
      still_q <= shown_q ? more_by(still_q, 7'd1) : '0;
      if (told || !unreported_q || !aging) old_q <= '0;
      else if (old_q != max_age_i) old_q <= old_q + 1'b1;
      if (told || !unreported_q || !aging || old_q != max_age_i || telling) aged_q <= '0;
      else aged_q <= aged_q + 1'b1;
      if (told || !marked_q || telling) marked_for_q <= '0;
      else marked_for_q <= marked_for_q + 1'b1;
      if (told || takes || posts || !on || !unreported_q || more_q) begin
        answers_q <= '0;
        alone_q   <= '0;
      end else begin
        if (answers && seen_q == idx_q && !behind_q && answers_q != '1) begin
          answers_q <= answers_q + 1'b1;
        end
        alone_q <= (telling || ask_valid || open_q) ? '0 : alone_q + 1'b1;
      end
      answered_q <= (answers && seen_q == idx_q && !behind_q) ? '0 : more_by(answered_q, 7'd1);
    end
  end

  // What held in the cycle in which it was decided.
  logic by_marker_q, by_age_q, by_empty_q, was_q, tell_valid_q;
  always_ff @(posedge clk_i) begin
    by_marker_q  <= marked_early_q;
    by_age_q     <= aging_early && (age_q >= 7'(max_age_i) || writes_age);
    by_empty_q   <= on_early && shown_q && (still_q >= 7'(holdoff_i)) && (answered_q < 7'(Fresh));
    was_q        <= unreported_q;
    tell_valid_q <= tell_valid && run;
  end

  always_ff @(posedge clk_i) begin
    if (run && Reasons && tell_valid && !tell_valid_q) begin
      Unreported: assert (was_q);
      Reason: assert (by_marker_q || by_age_q || by_empty_q);
    end
    if (run && Due) begin
      Alone: assert (alone_q <= 6'(Slack) + ((answers_q == 2'd1) ? 6'(holdoff_i) : '0));
      Answered: assert (answers_q != '1);
      Aged: assert (aged_q < 6'(Slack));
      Marked: assert (marked_for_q < 6'(Slack));
    end
    if (run) Queue: assert ((!ask_valid || ask_q == 7'd1) && (!tell_valid || tell_q == 7'd1));
  end

  logic unused;
  assign unused = ^{idle, armed, left, rsp.rdata};
endmodule
