// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Takes the head descriptors of a job, once all its reads have ended, and hands them in ring order
// to the prefetch RAM of their queue. Room was reserved by vq_avail. The control RAM is read once a
// cycle: a word of ids for four entries, then two words for each, so an entry takes 2.25 cycles. A
// read that failed or an entry outside the ring stops the whole device (DEVICE_NEEDS_RESET).
`include "ferronic_assert.svh"
module vq_desc_load
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter bit Markers = 1'b1   // DescFlagMarker is looked at
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,

  input  logic         load_valid_i,
  output logic         load_ready_o,
  input  vq_job_t      load_job_i,
  input  logic [4:0]   load_reads_i,
  input  logic         load_addr1_i,
  input  logic         load_bad_i,
  input  dma_rd_done_t done_i,

  output logic         ram_req_o,
  output logic [8:0]   ram_addr_o,
  input  logic         ram_gnt_i,
  input  logic         ram_valid_i,
  input  logic [63:0]  ram_data_i,

  // Heads to the prefetch RAM, always taken.
  output logic         head_valid_o,
  output qid_t         head_q_o,
  output vq_head_t     head_o,

  output logic         slot_free_o,
  output logic         error_o,
  output qid_t         error_q_o,
  output logic         idle_o
);
  localparam int unsigned W = $bits(vq_job_t) + 5 + 1 + 1;
  typedef enum logic [1:0] {StIdle, StRun, StDone} st_e;
  // What a read is for: a word of four ids, or half a descriptor.
  typedef enum logic [1:0] {RdIds, RdLow, RdHigh} rd_e;

  st_e         st_q;
  vq_job_t     job_q, job;
  logic [4:0]  reads;
  logic        addr1_q, addr1, bad_q, bad;
  logic        valid, pop;
  logic [3:0]  level;
  rd_e         ask_q, get_q;        // next read to ask for, next to arrive
  logic [4:0]  ask_i_q, get_i_q;    // of which entry
  logic [63:0] ids_q, lo_q;
  logic [7:0]  done_count_q;  // reads ended and not yet claimed by a job
  logic        done_err_q;

  prim_fifo #(.Width(W), .Depth(JobSlots)) u_jobs (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(load_valid_i), .wr_ready_o(load_ready_o),
    .wr_data_i({load_job_i, load_reads_i, load_addr1_i, load_bad_i}),
    .rd_valid_o(valid), .rd_ready_i(pop), .rd_data_o({job, reads, addr1, bad}), .level_o(level)
  );

  vq_cookie_t cookie;
  assign cookie = vq_cookie_t'(done_i.cookie);
  wire done = done_i.valid && (cookie.client == ClDesc);

  assign pop = (st_q == StIdle) && valid && (done_count_q >= {3'd0, reads});

  // Entry i lies at half-word i + addr1 of the job's slot; four make a word.
  wire [5:0] ask_half  = {1'b0, ask_i_q} + {5'd0, addr1_q};
  wire [5:0] get_half  = {1'b0, get_i_q} + {5'd0, addr1_q};
  wire       get_last  = (get_i_q + 5'd1 == job_q.count);
  wire       all_asked = (ask_i_q == job_q.count);
  function automatic rd_e after(input rd_e now, input logic [1:0] half);
    unique case (now)
      RdIds:   after = RdLow;
      RdLow:   after = RdHigh;
      default: after = (half == 2'd3) ? RdIds : RdLow;
    endcase
  endfunction

  assign ram_req_o  = (st_q == StRun) && !all_asked;
  assign ram_addr_o = (ask_q == RdIds) ? {CtlAvail[11:9], job_q.slot, ask_half[4:2]}
                                       : {CtlDesc[11], job_q.slot, ask_i_q[3:0], ask_q == RdHigh};

  assign head_valid_o = ram_valid_i && (get_q == RdHigh);
  assign head_q_o     = job_q.q;
  wire [15:0] id = ids_q[16*get_half[1:0] +: 16];
  assign head_o = '{marker: Markers && ram_data_i[32 + DescFlagMarker], id: id[10:0],
                    desc: descriptor(lo_q, ram_data_i)};

  assign slot_free_o = (st_q == StDone);
  assign error_o     = (st_q == StDone) && bad_q;
  assign error_q_o   = job_q.q;
  assign idle_o      = (st_q == StIdle) && !valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q         <= StIdle;
      done_count_q <= '0;
      done_err_q   <= 1'b0;
    end else if (fn_rst_i) begin
      st_q         <= StIdle;
      done_count_q <= '0;
      done_err_q   <= 1'b0;
    end else begin
      done_count_q <= done_count_q + 8'(done) - (pop ? {3'd0, reads} : 8'd0);
      // Any failed descriptor read is fatal for the device, so it need not be told whose it was.
      if (done && done_i.err) done_err_q <= 1'b1;
      unique case (st_q)
        StIdle: if (pop) st_q <= (bad || done_err_q) ? StDone : StRun;
        StRun: if (head_valid_o && get_last) st_q <= StDone;
        StDone: st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (st_q == StIdle) begin
      job_q   <= job;
      addr1_q <= addr1;
      bad_q   <= bad || done_err_q;
      ask_q   <= RdIds;
      get_q   <= RdIds;
      ask_i_q <= '0;
      get_i_q <= '0;
    end else begin
      if (ram_gnt_i) begin
        ask_q <= after(ask_q, ask_half[1:0]);
        if (ask_q == RdHigh) ask_i_q <= ask_i_q + 5'd1;
      end
      if (ram_valid_i) begin
        get_q <= after(get_q, get_half[1:0]);
        unique case (get_q)
          RdIds:   ids_q <= ram_data_i;
          RdLow:   lo_q <= ram_data_i;
          default: get_i_q <= get_i_q + 5'd1;
        endcase
      end
    end
  end

  logic unused;
  assign unused = ^{level, cookie, id[15:11], ask_half[5], get_half[5:2], CtlDesc[10:0]};
endmodule
