// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Turns a run of available entries into reads of their head descriptors. Neighbouring descriptor
// numbers share one read. Jobs are worked on in order; up to JobSlots are in flight between here,
// the DMA reader and vq_desc_load. An entry in two cycles once the entries have arrived: the number
// is put into a register, then looked at.
//
// Guessing: a driver that uses descriptors in turn names descriptor (entry + shift) in each entry
// of its ring. While that has been so for a queue, vq_avail reads those descriptors together with
// the entries; if the guess was right nothing is left to read. If not, the guess is thrown away
// once it has arrived, the descriptors are read as named, and the queue is not guessed until a
// whole run was in turn again.
`include "ferronic_assert.svh"
module vq_desc_fetch
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,
  input  vq_clear_t    clear_i,

  input  logic         job_valid_i,
  output logic         job_ready_o,
  input  vq_job_t      job_i,
  input  vq_guess_t    job_guess_i,
  input  qid_t         look_q_i,
  output logic         look_on_o,
  output logic [10:0]  look_shift_o,
  input  dma_rd_done_t done_i,

  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  output logic         rd_valid_o,
  input  logic         rd_ready_i,
  output vq_rd_t       rd_o,

  // To vq_desc_load: the job, how many reads it has, where its entries start, and whether it is
  // to be thrown away.
  output logic         load_valid_o,
  input  logic         load_ready_i,
  output vq_job_t      load_job_o,
  output logic [4:0]   load_reads_o,
  output logic         load_addr1_o,
  output logic         load_bad_o
);
  typedef enum logic [3:0] {
    StIdle, StWord, StWordWait, StName, StEntry, StSend, StGuessWait, StLearn, StLoad
  } st_e;
  st_e         st_q;
  vq_job_t     job_q;
  logic        job_valid, job_pop;
  vq_job_t     job_head;
  vq_guess_t   guess_head, guess_q;
  logic        right_q;     // the guess holds so far
  logic [10:0] id0_q;       // first descriptor named
  logic [3:0]  job_level;
  logic        addr1_q, bad_q;
  logic [4:0]  i_q;         // next entry
  logic [4:0]  half_q;      // where it lies in the job's slot, in half-words
  logic [11:0] number_q;    // what it names; 2,048 and more are alike
  logic [11:0] next_q;      // what goes on with the run, or with the guess
  logic        all_q;       // there is no next entry
  logic        end_q;       // another word comes behind it
  logic [63:0] word_q;
  logic [4:0]  run_q;       // entries in the run collected so far
  logic [4:0]  first_q;     // its first entry
  logic [10:0] start_q;     // its first descriptor
  logic [4:0]  reads_q;
  logic [10:0] mask;

  prim_fifo #(.Width($bits(vq_job_t) + $bits(vq_guess_t)), .Depth(JobSlots)) u_jobs (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(job_valid_i), .wr_ready_o(job_ready_o), .wr_data_i({job_i, job_guess_i}),
    .rd_valid_o(job_valid), .rd_ready_i(job_pop), .rd_data_o({job_head, guess_head}),
    .level_o(job_level)
  );

  // What to guess, by queue. A fresh ring is guessed to start with descriptor 0 in entry 0.
  logic        learn;
  logic [10:0] shift;
  assign learn = (st_q == StLearn);
  assign shift = (id0_q - guess_q.entry) & mask;
  prim_lutram #(.Width(12), .Depth(NumQueues)) u_guess (
    .clk_i, .we_i(learn || clear_i.valid),
    .waddr_i(clear_i.valid ? clear_i.q[QW-1:0] : job_q.q[QW-1:0]),
    .wdata_i(clear_i.valid ? {1'b1, 11'd0} : {!bad_q && (right_q || reads_q == 5'd1), shift}),
    .raddr_i(look_q_i[QW-1:0]), .rdata_o({look_on_o, look_shift_o})
  );
  assign mask = ring_mask(guess_q.ring);

  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  logic done_valid, done_pop, done_err, done_addr1, done_ready;
  logic [3:0] done_level;
  prim_fifo #(.Width(2), .Depth(JobSlots)) u_done (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(done_i.valid && cookie.client == ClAvail), .wr_ready_o(done_ready),
    .wr_data_i({done_i.err, cookie.addr1}),
    .rd_valid_o(done_valid), .rd_ready_i(done_pop), .rd_data_o({done_err, done_addr1}),
    .level_o(done_level)
  );

  // Guessed reads end in order too.
  logic guess_valid, guess_pop, guess_err, guess_ready;
  logic [3:0] guess_level;
  prim_fifo #(.Width(1), .Depth(JobSlots)) u_guess_done (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(done_i.valid && cookie.client == ClGuess), .wr_ready_o(guess_ready),
    .wr_data_i(done_i.err), .rd_valid_o(guess_valid), .rd_ready_i(guess_pop),
    .rd_data_o(guess_err), .level_o(guess_level)
  );
  assign guess_pop = (st_q == StGuessWait) && guess_valid;

  assign job_pop  = (st_q == StIdle) && job_valid && done_valid;
  assign done_pop = job_pop;

  // Entry i lies at half-word i + addr1 of the slot.
  wire [15:0] id      = word_q[16*half_q[1:0] +: 16];
  wire        id_bad  = |(number_q & ~{1'b0, mask});   // above the mask
  wire        follows = (number_q == next_q);
  wire        begun   = (run_q != '0);
  wire        guess_on = guess_q.guessed && follows && !all_q;
  wire        run_on  = !guess_q.guessed && !all_q && !id_bad && (follows || !begun);
  wire        step    = (st_q == StEntry) && (guess_on || run_on);

  assign ram_req_o  = (st_q == StWord);
  assign ram_addr_o = {CtlAvail[11:9], job_q.slot, half_q[4:2]};

  assign rd_valid_o = (st_q == StSend);
  always_comb begin
    rd_o        = '0;
    rd_o.area   = AreaDesc;
    rd_o.q      = job_q.q;
    rd_o.offset = {5'd0, start_q, 4'd0};
    rd_o.len    = {run_q, 4'd0};
    rd_o.ptr    = CtlDesc | {1'b0, job_q.slot, first_q[3:0], 4'd0};
    rd_o.client = ClDesc;
    rd_o.tag    = {1'b0, job_q.slot};
  end

  assign load_valid_o = (st_q == StLoad);
  assign load_job_o   = job_q;
  assign load_reads_o = reads_q;
  assign load_addr1_o = addr1_q;
  assign load_bad_o   = bad_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) st_q <= StIdle;
    else if (fn_rst_i) st_q <= StIdle;
    else begin
      unique case (st_q)
        StIdle: begin
          if (job_pop && !done_err) st_q <= StWord;
          else if (job_pop) st_q <= guess_head.guessed ? StGuessWait : StLoad;
        end
        StWord: if (ram_gnt_i) st_q <= StWordWait;
        StWordWait: if (ram_valid_i) st_q <= StName;
        StName: st_q <= StEntry;
        StEntry: begin
          if (guess_on || run_on) st_q <= end_q ? StWord : StName;
          else if (guess_q.guessed) st_q <= StGuessWait;
          else if (begun) st_q <= StSend;
          else st_q <= all_q ? StLearn : StLoad;
        end
        StSend: if (rd_ready_i) st_q <= (all_q || bad_q) ? StLearn : StEntry;
        StGuessWait: if (guess_valid) st_q <= (bad_q || guess_err) ? StLoad :
                                              right_q ? StLearn : StWord;
        StLearn: st_q <= StLoad;
        StLoad: if (load_ready_i) st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StIdle: begin
        job_q   <= job_head;
        guess_q <= guess_head;
        right_q <= guess_head.guessed;
        addr1_q <= done_addr1;
        bad_q   <= done_err;
        i_q     <= '0;
        half_q  <= {4'd0, done_addr1};
        next_q  <= {1'b0, guess_head.guess};
        run_q   <= '0;
        reads_q <= '0;
      end
      StWordWait: word_q <= ram_data_i;
      StName: begin
        number_q <= {|id[15:11], id[10:0]};
        if (i_q == '0) id0_q <= id[10:0];
        all_q <= (i_q == job_q.count);
        end_q <= (half_q[1:0] == 2'd3) && (i_q + 5'd1 != job_q.count);
      end
      StEntry: begin
        if (step) begin
          i_q    <= i_q + 5'd1;
          half_q <= half_q + 5'd1;
          next_q <= number_q + 12'd1;
        end
        if (!all_q) begin
          if (guess_q.guessed) right_q <= follows;
          else if (id_bad) bad_q <= 1'b1;
        end
        if (!guess_q.guessed && step) run_q <= run_q + 5'd1;
        if (!begun) begin
          start_q <= number_q[10:0];
          first_q <= i_q;
        end
      end
      StGuessWait: begin
        // The descriptors lie in the table that the driver gave: not to be refused, guessed or not.
        if (guess_valid && guess_err) bad_q <= 1'b1;
        // A wrong guess: from the start again, as the entries say.
        if (guess_valid && !right_q) begin
          guess_q.guessed <= 1'b0;
          right_q         <= 1'b0;
          i_q             <= '0;
          half_q          <= {4'd0, addr1_q};
        end
      end
      StSend: begin
        if (rd_ready_i) begin
          run_q   <= '0;
          reads_q <= reads_q + 5'd1;
        end
      end
      default: ;
    endcase
  end

  `FERRONIC_ASSERT(DoneFits, !(done_i.valid && cookie.client == ClAvail) || done_ready,
                   clk_i, rst_ni)
  `FERRONIC_ASSERT(GuessFits, !(done_i.valid && cookie.client == ClGuess) || guess_ready,
                   clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(RdStable, rd_valid_o, rd_ready_i || fn_rst_i, rd_o, clk_i, rst_ni)

  logic unused;
  assign unused = ^{clear_i.q, look_q_i, guess_level, job_level, done_level, cookie.tag,
                    job_q.q, first_q[4], guess_q.guess};
endmodule
